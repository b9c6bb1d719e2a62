// The seconds before a sale, told as they go, and the way to call it off.
const SECOND_MS = 1000;
let running = null;

export const countingDown = () => running !== null;

export function cancelCountdown() {
  running?.end(false);
}

// Calls tell(3), tell(2), tell(1), tell(0), a second apart. True at the end, false when called off.
export function countDown(seconds, tell) {
  return new Promise((resolve) => {
    let timer;
    const end = (ended) => {
      clearTimeout(timer);
      running = null;
      tell(0);
      resolve(ended);
    };
    const step = (left) => {
      if (left === 0) return end(true);
      tell(left);
      timer = setTimeout(step, SECOND_MS, left - 1);
    };
    running = { end };
    step(seconds);
  });
}
