// Templates and state of the page. The imported files are from npm packages.
import htm from './htm.js';
import { h } from './preact-core.js';

export { render } from './preact-core.js';
export { useEffect, useRef, useState } from './preact-hooks.js';
export const html = htm.bind(h);
