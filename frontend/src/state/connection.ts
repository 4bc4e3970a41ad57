/** Whether the server answers. */

import { signal } from '@preact/signals';
import { ApiError, ServerGone } from '../api/client';
import type { ErrorInfo } from '../api/types.gen';

/** True from the first request that nobody answered until one is answered. */
export const gone = signal(false);

/** Waits for an answer and notes whether there was one. */
export async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    const value = await answer;
    gone.value = false;
    return value;
  } catch (error) {
    gone.value = error instanceof ServerGone;
    throw error;
  }
}

/** The words for a failed request; null for one that was given up, or that the bar about the server tells already. */
export function errorInfo(error: unknown): ErrorInfo | null {
  if (error instanceof ServerGone || (error instanceof DOMException && error.name === 'AbortError')) return null;
  if (error instanceof ApiError) return error.info;
  return { code: 0, message: `The page failed: ${String(error)}`, advice: 'Reload the page.' };
}
