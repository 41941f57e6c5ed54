// The types of preact.js, which imports files without types. The same packages have the types.
export { html } from 'htm/preact';
export { render } from 'preact';
export { useEffect, useRef, useState } from 'preact/hooks';
