/** Source text as lines of coloured pieces. */

export interface Token { text: string; scope: string }
export type Line = readonly Token[];

export const plainLines = (lines: readonly string[]): Line[] => lines.map((text) => [{ text, scope: '' }]);

/** Collects pieces of text with their scope and breaks them at line ends. */
export class LineBuilder {
  readonly lines: Token[][] = [[]];
  private readonly scopes: string[] = [];

  open(scope: string): void {
    this.scopes.push(scope);
  }

  close(): void {
    this.scopes.pop();
  }

  add(text: string): void {
    const scope = this.scopes.at(-1) ?? '';
    for (const [index, part] of text.split('\n').entries()) {
      if (index > 0) this.lines.push([]);
      if (part) this.lines.at(-1)?.push({ text: part, scope });
    }
  }
}
