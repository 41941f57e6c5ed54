import type { Extra } from '../../cli/extra.ts';
import type { OpenExtra } from '../../service.ts';
import { readTraceSettings, type TraceSettings } from './trace-settings.ts';

/** Spans of requests and commits go to a collector of OpenTelemetry. */
export const traces: Extra = {
  read(_options, env, warn) {
    const settings = readTraceSettings(env, warn);
    return settings && tracesExtra(settings);
  },
};

/** Makes the extra with these settings. Opening it loads its code. */
export function tracesExtra(settings: TraceSettings): OpenExtra {
  return async ({ metrics, log }, opened) => {
    const { Tracing } = await import('./tracing.ts');
    const tracing = opened.use(new Tracing(settings, metrics.registry, log));
    return { observers: [tracing], traceSources: [tracing] };
  };
}
