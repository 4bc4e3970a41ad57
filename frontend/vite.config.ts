import { defineConfig } from 'vite';
import { notices } from './notices.ts';

const { bundle, worker } = notices();

export default defineConfig({
  plugins: [bundle],
  base: './',
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../tb_tidy_plugin/plugin/static',
    emptyOutDir: true, // also removes .stamp: stamp.mjs must run after every build
    target: 'es2022',
    modulePreload: false,
    sourcemap: false,
    rolldownOptions: {
      input: 'src/index.ts',
      preserveEntrySignatures: 'allow-extension', // keep the export of render(); what later chunks need of the entry is exported beside it
      output: {
        entryFileNames: 'index.js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/[name]-[hash][extname]',
      },
    },
  },
  worker: {
    plugins: () => [worker],
    format: 'es', // the host's policy blocks blob: workers, so it must be a file of its own
    rolldownOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
});
