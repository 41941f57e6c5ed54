/**
 * The address of the operation.
 *
 * @param base address of the service, with or without a / at its end
 */
export function plantsUrl(base: URL): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/plants`;
  // A bare ? or # is not part of either, and would stay.
  url.search = '';
  url.hash = '';
  return url;
}
