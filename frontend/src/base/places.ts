/** Places in source files: their names and keys. */

export interface PlaceLike { file: string; line: number }

export const fileName = (path: string): string => path.split(/[\\/]/).at(-1) ?? path;

/** Code that `torch.compile` generated: its pass, and further lines that the same kernel computes. */
export interface GeneratedLike { of: 'forward' | 'backward'; also: PlaceLike[] }

/** `model.py:190`; of compiled code `backward of model.py:190 (+189, layers.py:12)`. */
export function placeText({ file, line, generated }: PlaceLike & { generated?: GeneratedLike | null | undefined }): string {
  const place = `${fileName(file)}:${line}`;
  if (!generated) return place;
  const others = generated.also.map((other) => (other.file === file ? String(other.line) : placeText(other)));
  return `${generated.of === 'backward' ? 'backward of ' : ''}${place}${others.length > 0 ? ` (+${others.join(', ')})` : ''}`;
}

interface LinesLike { line: number; end_line: number; ties?: number[] }

/** The lines to mark: each of the equally likely ones, else all lines of the statement. */
export const marksAt = ({ line, end_line: endLine, ties = [] }: LinesLike): { line: number; endLine: number }[] =>
  (ties.length > 1 ? ties.map((tie) => ({ line: tie, endLine: tie })) : [{ line, endLine }]);

/** Shortest distinct names of paths: `train.py`, or `a/model.py` and `b/model.py`. */
export function shortNames(paths: Iterable<string>): Map<string, string> {
  const all = [...new Set(paths)];
  return new Map(all.map((path) => [path, shortest(path, all)]));
}

function shortest(path: string, all: readonly string[]): string {
  const parts = path.split(/[\\/]/);
  for (let length = 1; length < parts.length; length += 1) {
    const name = parts.slice(-length).join('/');
    const rivals = all.filter((other) => other !== path && ends(other, name));
    if (rivals.length === 0) return name;
  }
  return path;
}

const ends = (path: string, name: string): boolean => `/${path.replaceAll('\\', '/')}`.endsWith(`/${name}`);
