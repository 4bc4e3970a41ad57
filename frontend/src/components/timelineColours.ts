/** Colours of the timeline, taken from the page's style sheet, which a canvas does not follow by itself. */

export interface Colours {
  background: string; text: string; muted: string; line: string; soft: string; accent: string; shade: string; focus: string; grey: string;
  /** By the server's category of an event. */
  fills: readonly string[];
  /** The text colour on each of them. */
  letters: readonly string[];
  /** A colour of the parts of a bar, and the text colour on it. */
  part: (name: string) => { fill: string; letters: string };
  onGrey: string; onAccent: string;
  /** Colour of busy time. */
  host: string; device: string;
  /** Colours of increases (0 to 1) and decreases (-1 to 0), and the text colour on them. */
  differences: (change: number) => { fill: string; letters: string };
}

/** Other, operator, annotation, Python, memory, runtime, kernel, copy, fill, annotation of a device, overhead. */
const FILLS = [
  '--part-grey-dark', '--part-sky', '--part-green', '--part-grey', '--part-pink', '--part-red', '--part-blue', '--part-orange',
  '--part-orange', '--part-green', '--part-grey-dark',
];

/** Meaning of the bars' colours, for the legend: a colour of the style sheet and its kinds of events. */
export const LEGEND: readonly { colour: string; label: string }[] = [
  { colour: '--part-sky', label: 'operators' }, { colour: '--part-grey', label: 'Python' }, { colour: '--part-red', label: 'runtime calls' },
  { colour: '--part-green', label: 'annotations' }, { colour: '--part-blue', label: 'kernels' }, { colour: '--part-orange', label: 'copies and fills' },
  { colour: '--part-pink', label: 'memory' }, { colour: '--part-grey-dark', label: 'profiler and other' },
];

/** Between the reader's own two colours: far enough from one to be visible, from the other to be written on. */
const BETWEEN = 'color-mix(in srgb, CanvasText 45%, Canvas)';

const FORCED: Colours = {
  background: 'Canvas', text: 'CanvasText', muted: 'CanvasText', line: 'CanvasText', soft: 'color-mix(in srgb, CanvasText 20%, Canvas)', accent: 'Highlight',
  shade: 'Canvas', focus: 'Highlight', grey: BETWEEN, fills: FILLS.map(() => BETWEEN), letters: FILLS.map(() => 'CanvasText'), part: () => ({ fill: BETWEEN, letters: 'CanvasText' }), onGrey: 'CanvasText',
  onAccent: 'HighlightText', host: BETWEEN, device: BETWEEN,
  differences: (change) => (change > 0 ? { fill: 'Highlight', letters: 'HighlightText' } : { fill: BETWEEN, letters: 'CanvasText' }),
};

export function readColours(): Colours {
  if (matchMedia('(forced-colors: active)').matches) return FORCED;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim() || '#888';
  const fills = FILLS.map(of);
  const [grey, accent] = [of('--line'), of('--bar')];
  return {
    background: of('--bg'), text: of('--text'), muted: of('--muted'), line: of('--line'), soft: of('--line-soft'), accent, grey, shade: of('--shade'),
    focus: of('--focus'), fills, letters: fills.map(lettersOn), part: (name) => ({ fill: of(`--part-${name}`), letters: lettersOn(of(`--part-${name}`)) }), onGrey: lettersOn(grey), onAccent: lettersOn(accent),
    host: of('--part-sky'), device: of('--part-blue'),
    differences: (change) => tinted(of(change > 0 ? '--high' : '--low'), of('--line-soft'), Math.abs(change)),
  };
}

/** Black or white, whichever differs more in luminance (WCAG 2). */
export function lettersOn(colour: string): string {
  const digits = DIGITS.exec(long(colour));
  if (!digits) return '#000';
  const [red = 0, green = 0, blue = 0] = digits.slice(1).map((text) => linear(Number.parseInt(text, 16) / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}

const DIGITS = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})$/i;
const LEAST_TINT = 0.35;

/** A colour laid over another one; a larger `part`, 0 to 1, is stronger. */
function tinted(colour: string, under: string, part: number): { fill: string; letters: string } {
  const [over, below] = [colour, under].map((text) => (DIGITS.exec(long(text))?.slice(1) ?? ['80', '80', '80']).map((digits) => Number.parseInt(digits, 16)));
  const strength = LEAST_TINT + (1 - LEAST_TINT) * part;
  const mixed = (over ?? []).map((value, at) => Math.round(value * strength + (below?.[at] ?? 0) * (1 - strength)).toString(16).padStart(2, '0'));
  const fill = `#${mixed.join('')}`;
  return { fill, letters: lettersOn(fill) };
}

const long = (colour: string): string => colour.replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3');

const linear = (value: number): number => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);

/** Calls back when any of them has changed, until the returned function is called. */
export function watchColours(changed: () => void): () => void {
  const forced = matchMedia('(forced-colors: active)');
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  forced.addEventListener('change', changed);
  return () => {
    observer.disconnect();
    forced.removeEventListener('change', changed);
  };
}
