// The types of preact.js. The files that it imports have none: they are those of packages.
export { html } from 'htm/preact';
export { render } from 'preact';
export { useEffect, useRef, useState } from 'preact/hooks';
