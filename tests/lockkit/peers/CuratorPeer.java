// Apache Curator's locks, which contend with lockkit: see ../../lib/peers/contest.h.
//
//     java CuratorPeer.java mutex|writer|reader SERVER PATH FILE TURNS SEEN
import java.io.RandomAccessFile;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

class CuratorPeer {
    static final int PATIENCE_MS = 240000;

    static InterProcessLock lock(CuratorFramework client, String kind, String path) {
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        switch (kind) {
        case "mutex":
            return new InterProcessMutex(client, path);
        case "writer":
            return both.writeLock();
        default:
            return both.readLock();
        }
    }

    static int read(RandomAccessFile file) throws Exception {
        byte[] digits = new byte[10];
        file.seek(0);
        file.readFully(digits);
        return Integer.parseInt(new String(digits));
    }

    public static void main(String[] args) throws Exception {
        boolean reads = args[0].equals("reader");
        int turns = Integer.parseInt(args[4]), seen = Integer.parseInt(args[5]);
        int made = 0, moved = 0, torn = 0, last = -1;
        long deadline = System.nanoTime() + PATIENCE_MS * 1000000L;
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[1])
            .retryPolicy(new RetryOneTime(100))
            .authorization("digest", System.getenv("LOCKKIT_ZOOKEEPER_AUTH").getBytes()).build();
        client.start();
        InterProcessLock lock = lock(client, args[0], args[2]);
        RandomAccessFile file = new RandomAccessFile(args[3], "rw");
        while (made < turns || moved < seen) {
            if (System.nanoTime() > deadline || !lock.acquire(PATIENCE_MS, TimeUnit.MILLISECONDS))
                throw new Exception("out of time after " + made + " turns, " + moved + " of ours seen");
            int number = read(file);
            moved += last >= 0 && number != last ? 1 : 0;
            Thread.sleep(made % 4 == 0 ? 12 : 1);
            last = number + (reads ? 0 : 1);
            if (reads) {
                torn += read(file) != number ? 1 : 0;
            } else {
                file.seek(0);
                file.write(String.format("%010d", last).getBytes());
            }
            lock.release();
            made++;
            Thread.sleep(1);
        }
        System.out.println(made + " " + torn);
        client.close();
    }
}
