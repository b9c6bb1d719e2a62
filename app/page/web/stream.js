// The service's events, as they come; the browser reconnects and sends Last-Event-ID by itself.
export let heardFrom = null; // the instance whose events they are

export function listen({ trace, counters, limits, state }) {
  const source = new EventSource("/v1/events");
  const on = (name, call) => source.addEventListener(name, (event) => call(JSON.parse(event.data)));
  on("trace", trace);
  on("counters", counters);
  on("limits", limits);
  on("hello", ({ instance }) => {
    heardFrom = instance;
    state(true);
  });
  source.addEventListener("error", () => state(false));
}

export async function ask(path, options = {}) {
  const answer = await fetch(path, options);
  const body = await answer.json();
  if (!answer.ok) {
    const error = new Error(body.detail || body.title);
    error.status = answer.status;
    error.problem = String(body.type).split("/").pop();
    throw error;
  }
  return body;
}

export function post(path, body) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}
