import { defineConfig } from 'vitest/config';

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: {
    environment: 'happy-dom',
    setupFiles: ['src/testing/setup.ts'],
    testTimeout: 240_000, // four waits of a busy machine, each as long as `setup.ts` lets it be
    include: ['src/**/*.test.{ts,tsx}'],
    restoreMocks: true,
    unstubGlobals: true,
  },
});
