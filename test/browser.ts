import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { bundledChromium, type ChromiumFiles } from './bundled-chromium.ts';

/** A real Chromium, with nothing in it that an earlier test left. */
export interface TestBrowser {
  /** Opens a page that knows nothing of the others. */
  openPage(options?: BrowserContextOptions): Promise<WatchedPage>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A page, and what it did that no page of ours may do. */
export interface WatchedPage {
  page: Page;
  /** Every request that left the page, `METHOD URL`. */
  requests: string[];
  /** Faults that the browser reports: of scripts, of a Content-Security-Policy, of a request. */
  complaints: string[];
}

/**
 * Starts the Chromium that npm brings. There is one for Linux alone, on x64; elsewhere name one of your own with the
 * environment variable `PLANT_STORE_TEST_CHROMIUM`.
 *
 * @throws where there is none: a test that needs a browser fails rather than being passed over
 */
export async function startBrowser(): Promise<TestBrowser> {
  const named = process.env.PLANT_STORE_TEST_CHROMIUM;
  const browser = await launch(
    named === undefined ? await bundledChromium() : { executablePath: named, env: {} },
  );
  return {
    openPage: options => openPage(browser, options),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

function launch({ executablePath, env }: ChromiumFiles): Promise<Browser> {
  // The flags that the package names turn the same-origin policy off, which is among what is tested. The sandbox does not
  // work for root, as which tests often run.
  const args = ['--no-sandbox', '--no-zygote', '--disable-gpu'];
  return chromium.launch({ executablePath, args, env: { ...process.env, ...env } });
}

async function openPage(browser: Browser, options?: BrowserContextOptions): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  context.on('request', request => requests.push(`${request.method()} ${request.url()}`));
  context.on('weberror', error => complaints.push(String(error.error())));
  context.on('console', message => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  return { page, requests, complaints };
}
