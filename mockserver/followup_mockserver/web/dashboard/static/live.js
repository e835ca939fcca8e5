// Keeps the view up to date, and shows when the mock does not respond.

import { Rejected, Unreachable, fetchVersion } from "./mock.js";

const MIN_UPDATE_INTERVAL = 300; // milliseconds: a busy mock changes far more often than a user can read
const RETRY_INTERVAL = 1000;

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Live {
  /** Whether the mock did not respond before the current rendering. */
  wasLost = false;
  #watching = new AbortController();
  #render;
  #onRejected;

  /**
   * `render` requests the view and shows it. `onRejected` reports that the mock rejected a request; it resolves to
   * whether further requests are useless.
   */
  constructor({ render, onRejected }) {
    this.#render = render;
    this.#onRejected = onRejected;
  }

  /** Shows the view of the current address, and watches the mock until the next call. */
  async start({ isNewView }) {
    this.#watching.abort();
    this.#watching = new AbortController();
    const { signal } = this.#watching;
    let needsRendering = false;
    let isStopped = false;
    try {
      await this.#show({ isNewView, signal });
    } catch (problem) {
      if (signal.aborted) return;
      needsRendering = true;
      isStopped = await this.#handle(problem);
    }
    if (!isStopped) this.#watch(signal, needsRendering, isNewView);
  }

  /** Shows that a request failed, if the reason is that the mock did not respond. */
  failed(problem) {
    if (!(problem instanceof Unreachable)) return;
    this.wasLost = true;
    showConnection(false);
  }

  async #watch(signal, needsRendering, isNewView) {
    while (!signal.aborted) {
      try {
        if (document.hidden) await visible();
        const since = document.getElementById("page").dataset.version ?? 0;
        // After a restart, versions begin again, so that an equal one says nothing.
        if (needsRendering || this.wasLost || String(await fetchVersion(since, signal)) !== since) {
          await this.#show({ isNewView: needsRendering && isNewView, signal });
          needsRendering = false;
        }
        await sleep(MIN_UPDATE_INTERVAL);
      } catch (problem) {
        if (signal.aborted || (await this.#handle(problem))) return;
        await sleep(RETRY_INTERVAL);
      }
    }
  }

  async #show(options) {
    await this.#render(options);
    this.wasLost = false;
    showConnection(true);
  }

  async #handle(problem) {
    this.failed(problem);
    return problem instanceof Rejected && (await this.#onRejected(problem));
  }
}

function visible() {
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function showConnection(isLive) {
  document.body.toggleAttribute("data-lost", !isLive);
  const bar = document.getElementById("connection");
  const text = isLive ? "" : "The mock does not respond (stopped?). Trying again …";
  if (bar.textContent !== text) bar.textContent = text;
  const indicator = document.getElementById("live");
  if (!indicator) return;
  indicator.textContent = isLive ? "live" : "not live";
  indicator.classList.toggle("live", isLive);
}
