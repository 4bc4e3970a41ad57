/** Severity by shape and colour, with the word for those who see neither. */

export type SeverityLevel = 'high' | 'medium' | 'low' | 'info';

const SHAPES: Record<SeverityLevel, string> = {
  high: 'M6 1.2 11.4 10.8H.6z',
  medium: 'M6 .6 11.4 6 6 11.4.6 6z',
  low: 'M6 1.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z',
  info: 'M6 1.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zm0 1.7a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6z',
};

export function SeverityGlyph({ level }: { level: SeverityLevel }) {
  return (
    <svg class={`severity severity-${level}`} viewBox="0 0 12 12" width="12" height="12" role="img" aria-label={`${level} severity`}>
      <title>{`Severity: ${level}`}</title>
      <path d={SHAPES[level]} fill="currentColor" />
    </svg>
  );
}
