/** Our keys in the host page's URL hash, which other plugins and the host itself use as well. */

const PREFIX = 'p.torchtidy.';
const TAB = 'torchtidy';

export function parseHash(hash: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const part of parts(hash)) {
    const equals = part.indexOf('=');
    if (equals < 0) continue; // the tab's id
    const key = decode(part.slice(0, equals));
    if (key.startsWith(PREFIX)) found[key.slice(PREFIX.length)] = decode(part.slice(equals + 1));
  }
  return found;
}

/** `hash` with some of our keys set or (null) removed. All foreign parts stay the same. */
export function withHash(hash: string, changes: Record<string, string | null>): string {
  const names = new Set(Object.keys(changes).map((key) => PREFIX + key));
  const kept = parts(hash).filter((part) => !names.has(decode(part.split('=')[0] ?? '')));
  if (!kept.some((part) => !part.includes('='))) kept.unshift(TAB); // the link must open this tab
  for (const [key, value] of Object.entries(changes)) {
    if (value !== null) kept.push(`${encodeURIComponent(PREFIX + key)}=${encodeURIComponent(value)}`);
  }
  return `#${kept.join('&')}`;
}

const parts = (hash: string): string[] => hash.replace(/^#/, '').split('&').filter(Boolean);

/** A hash may be typed by hand: undecodable parts are taken literally. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
