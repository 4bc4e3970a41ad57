/** A part of the page that could not be fetched. */

import { Button } from './Button';
import { Message } from './Spans';

interface Props { error: { message: string; advice: string } | null; onRetry: () => void }

export const Failure = ({ error, onRetry }: Props) => (
  <div class="failure">
    <p><Message text={error ? `${error.message} ${error.advice}` : 'This could not be fetched.'} /></p>
    <Button onClick={onRetry}>Try again</Button>
  </div>
);
