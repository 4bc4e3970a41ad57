/** Costs of lines, for the gutter of a source file. */

import { columnShare, columnTime, nanoseconds, partShare, plural } from './units';
import { FROM_CAPTURE, type KnownFromCapture } from './words';

interface Columns {
  wall_ns: number; line: number[]; host_ns: number[]; device_ns: number[]; calls: number[]; shared: number[]; known_by: (KnownFromCapture | null)[];
}
interface PlaceLike { file: string; line: number; ties?: number[]; matches: number; duration_ns: number }

export interface LineCost {
  /** Length of the bar, relative to the most expensive line. */
  bar: number;
  time: string;
  share: string;
  /** All known figures, in words. */
  words: string;
}

export type LineCosts = ReadonlyMap<number, LineCost>;

/** The costs of all calls over the recording. */
export function costsOfCalls({ wall_ns: wall, line, host_ns: host, device_ns: device, calls, shared, known_by: known }: Columns): LineCosts {
  const most = Math.max(1, ...host);
  return new Map(line.map((number, at) => {
    const [hostNs, deviceNs] = [host[at] ?? 0, device[at] ?? 0];
    const part = wall > 0 ? hostNs / wall : null;
    const onDevice = deviceNs > 0 ? `, ${nanoseconds(deviceNs)} on the device` : '';
    const lines = shared[at] ?? 1;
    const withOthers = lines > 1 ? `; shared by ${lines} lines` : '';
    const way = known[at];
    const replayed = way ? `; replayed: ${FROM_CAPTURE[way]}` : '';
    const words = `${nanoseconds(hostNs)} in ${plural(calls[at] ?? 0, 'call')}${onDevice}${part === null ? '' : `; ${partShare(part)} of the recording`}${withOthers}${replayed}`;
    return [number, { bar: hostNs / most, time: columnTime(hostNs), share: part === null ? '' : columnShare(part), words }];
  }));
}

/** The cost of one finding at its places in a file, per step or per trace. */
export function costsOfPlaces(places: readonly PlaceLike[], file: string, per: string, stepNs: number | null): LineCosts {
  const here = places.filter((place) => place.file === file);
  const most = Math.max(1, ...here.map((place) => place.duration_ns));
  return new Map(here.toReversed().map(({ line, matches, duration_ns: duration }) => {
    const part = stepNs ? duration / stepNs : null;
    const words = `${nanoseconds(duration)} per ${per} in ${plural(matches, 'match', 'matches')}${part === null ? '' : `; ${partShare(part)} of the ${per} time`}`;
    return [line, { bar: duration / most, time: columnTime(duration), share: part === null ? '' : columnShare(part), words }];
  }));
}

/** The next most expensive line after `from`; after the last one, and from any other line, the most expensive. */
export function nextHottest(costs: LineCosts, from: number | null): number | null {
  const order = [...costs].toSorted(([, a], [, b]) => b.bar - a.bar).map(([line]) => line);
  return order[(order.indexOf(from ?? 0) + 1) % Math.max(1, order.length)] ?? null;
}
