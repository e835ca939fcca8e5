// Loaded before the scripts of the dashboard: its requests go to the mock in the page around it.

const root = new URL("./", document.baseURI);

window.fetch = async (resource, { method = "GET", body, signal } = {}) => {
  const { href } = new URL(resource, document.baseURI);
  const [status, type, text] = await parent.followup.respond(method, href.slice(root.href.length), body);
  signal?.throwIfAborted();
  const page = text.replaceAll("/_mock/static/", "static/");
  return new Response(status === 204 ? null : page, { status, headers: { "Content-Type": type } });
};
