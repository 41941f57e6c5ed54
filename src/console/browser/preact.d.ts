// The service serves htm/preact/standalone.module.js as preact.js. The types that htm ships import
// the package preact, which is not installed: its code is a part of htm. So the types of hooks are
// here.
export { html, render } from 'htm/preact/standalone';

export function useState<Value>(
  initial: Value,
): [Value, (next: Value | ((previous: Value) => Value)) => void];
export function useRef<Value>(initial: Value): { current: Value };
/** The effect may return a function that ends it. */
export function useEffect(effect: () => unknown, dependencies: readonly unknown[]): void;
