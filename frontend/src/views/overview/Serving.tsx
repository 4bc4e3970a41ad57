/** Iterations of an inference server by phase, and the part of the replayed graphs' time with a known operator. */

import type { DecodeFloor, Graphs, PhaseTotal, ProfileReport } from '../../api/types.gen';
import { bytes, columnShare, columnTime, count, nanoseconds, plural, share } from '../../base/units';
import { fromCaptureText } from '../../base/words';
import { DataTable } from '../../components/DataTable';

const MODES: Record<PhaseTotal['mode'], string> = {
  graph: 'graph', piecewise: 'graph in pieces', eager: 'eager', no_device: 'nothing on the device',
};

const orDash = <T,>(value: T | null | undefined, text: (known: T) => string): string => (value === null || value === undefined ? '–' : text(value));

export function Serving({ report: { serving } }: { report: ProfileReport }) {
  if (!serving) return null;
  const title = serving.phases.length > 0 ? 'Serving' : 'Graphs';
  return (
    <section class="chart" aria-label={title}>
      <div class="chart-head"><h2>{title}</h2></div>
      {serving.phases.length > 0 && (
        <DataTable label="Iterations by phase" rows={serving.phases} columns={[
          { label: 'Phase', cell: (phase) => <>{phase.phase}{phase.size && ` ${phase.size}`} <span class="muted">{MODES[phase.mode]}{launchesText(phase.graph_launches ?? 0)}</span></> },
          { label: 'Iterations', number: true, cell: (phase) => count(phase.count) },
          { label: 'Requests', number: true, cell: (phase) => orDash(phase.requests, count) + (phase.padded ? ` of ${count(phase.padded)}` : '') },
          { label: 'Tokens', number: true, cell: (phase) => orDash(phase.tokens, count) },
          { label: 'KV tokens', number: true, cell: (phase) => orDash(phase.kv_tokens, count) },
          { label: 'Device time', number: true, cell: (phase) => columnTime(phase.device_ns) },
          { label: 'At least', number: true, cell: (phase) => orDash(phase.floor, ({ ns }) => columnTime(ns)) },
          { label: 'Device busy', number: true, cell: (phase) => columnShare(phase.busy_share) },
          { label: 'Waits for the host', number: true, cell: (phase) => columnTime(phase.host_late_ns) },
          { label: 'Tokens/s', number: true, cell: (phase) => orDash(phase.tokens_per_second, (rate) => count(Math.round(rate))) },
          { label: 'Per output token', number: true, cell: (phase) => orDash(phase.time_per_output_token_ns, nanoseconds) },
        ]} />
      )}
      {serving.phases.slice(0, 1).map(({ floor }) => floor && <p class="beside">{floorText(floor)}</p>)}
      {serving.graphs && <p class="beside">{graphsText(serving.graphs)}</p>}
    </section>
  );
}

const launchesText = (launches: number): string => (launches > 1 ? ` × ${count(launches)}` : '');

const floorText = ({ weight_bytes: weights, kv_bytes: cache, ns }: DecodeFloor): string =>
  `A decode reads ${bytes(weights)} of weights${cache > 0 ? ` and ${bytes(cache)} of KV cache` : ''}: at least ${nanoseconds(ns)}.`;

function graphsText({ launches, kernels, time_ns: time, attribution }: Graphs): string {
  const launched = `${plural(launches, 'graph launch', 'graph launches')}, ${plural(kernels, 'kernel')}, ${nanoseconds(time)}`;
  const known = attribution.filter((each) => each.known_by !== null);
  if (known.length === 0) return `${launched}. Their operators are not known: record the capture of the graphs, too.`;
  const ways = known.map((each) => `${fromCaptureText(each.known_by)} ${share(each.time_ns / Math.max(time, 1))}`).join(', ');
  return `${launched}. ${share(known.reduce((sum, each) => sum + each.time_ns, 0) / Math.max(time, 1))} of their time has an operator (${ways}).`;
}
