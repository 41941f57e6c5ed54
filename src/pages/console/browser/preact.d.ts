// The types of preact.js, which is `htm/preact/standalone`. Its own types need the package preact.
type State<Value> = [value: Value, set: (next: Value | ((previous: Value) => Value)) => void];
export function html(strings: TemplateStringsArray, ...values: unknown[]): object;
export function render(tree: object, parent: HTMLElement): void;
export function useEffect(effect: () => unknown, inputs: readonly unknown[]): void;
export function useMemo<Value>(make: () => Value, inputs: readonly unknown[]): Value;
export function useRef<Value>(initial: Value): { current: Value };
export function useState<Value>(initial: Value): State<Value>;
