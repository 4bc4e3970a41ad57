/** The benchmark card's place: the card is below the fold and comes as a chunk of its own. */

import { useEffect, useState } from 'preact/hooks';
import type { Finding } from '../../api/types.gen';

type Card = typeof import('./Benchmark').Benchmark;

let known: Card | null = null; // so that the next finding draws it at once

export function BenchmarkLater({ finding }: { finding: Finding }) {
  const [Benchmark, setCard] = useState<Card | 'missing' | null>(() => known);
  useEffect(() => {
    if (known) return;
    void import('./Benchmark').then((part) => { known = part.Benchmark; setCard(() => part.Benchmark); }, () => setCard('missing'));
  }, []);
  if (Benchmark === 'missing') return <p>This part of the page has changed on the server. Reload the page.</p>;
  return Benchmark && <Benchmark finding={finding} />;
}
