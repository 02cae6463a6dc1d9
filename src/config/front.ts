// The settings by which a listener judges requests: those of the proxy, or of a decision listener, which takes from the proxy
// what it leaves out. Without a proxy the defaults of one stand in; nothing is ever forwarded by them.
import type { z } from 'zod';
import type { DecisionSection } from './decision-keys.ts';
import { isMap, type Issue } from './problems.ts';
import { proxySection } from './proxy-keys.ts';

type ProxyConfig = z.output<typeof proxySection>;

/** A decision listener with the settings by which it judges requests. */
export type DecisionConfig = DecisionSection & { readonly front: ProxyConfig };

/** Completes a decision listener. `proxy`: the one beside it. */
export function completeDecision(section: DecisionSection, proxy: ProxyConfig | undefined): DecisionConfig {
  const base = proxy ?? proxySection.parse({ upstream: 'http://127.0.0.1:1' });
  const { listen, trustedPeers, limits, timeouts } = section;
  const { publicUrl, upstreamProfile, encodedSlashes, doubleSlashes, undeclaredMethods, methods } = section;
  const { preflight, corsOrigins, customerHeader, customerHeaderTrusted } = section;
  const own = {
    ...{ publicUrl, upstreamProfile, encodedSlashes, doubleSlashes, undeclaredMethods, methods },
    ...{ preflight, corsOrigins, customerHeader, customerHeaderTrusted },
  };
  const front = {
    ...over(base, own),
    ...{ listen, trustedProxies: trustedPeers, passPaymentHeaders: false },
    limits: over(base.limits, limits),
    timeouts: over(base.timeouts, timeouts),
  };
  return { ...section, front };
}

/** `base` with what `own` says; undefined says nothing. */
function over<T extends object>(base: T, own: { readonly [K in keyof T]?: T[K] | undefined }): T {
  const said = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...base, ...Object.fromEntries(said) };
}

/** Makes a list of a single listener, in `data`, which it changes. `written` says where an issue stands in the file. */
export function expandDecision(data: Record<string, unknown>): { readonly written: (issue: Issue) => Issue } {
  const given = data['decision'];
  if (given !== null && !isMap(given)) return { written: (issue) => issue };
  data['decision'] = [given ?? {}];
  return {
    written: (issue) => {
      const [section, index, ...rest] = issue.path;
      const covers = issue.covers?.[0] === 'decision' ? ['decision', ...issue.covers.slice(2)] : issue.covers;
      if (section !== 'decision' || index !== 0) return issue;
      return { ...issue, path: ['decision', ...rest], ...(covers && { covers }) };
    },
  };
}

/** The name of a decision listener in the log and among the addresses. */
export function decisionName(index: number): string {
  return index === 0 ? 'decision' : `decision[${index}]`;
}
