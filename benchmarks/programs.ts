import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = fileURLToPath(new URL('.', import.meta.url))
const outdir = join(here, '../.build/bench')

/** Compiles the programs that run in their own processes, so that no loader slows them down. */
export async function buildPrograms(): Promise<void> {
  const sources = ['bare-http', 'worker-http', 'worker-grpc', 'worker'].map((name) => `ceilings/${name}.ts`)
  await build({
    entryPoints: [...sources, 'generators/http2-client.ts'].map((file) => join(here, file)),
    entryNames: '[name]',
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outdir,
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
}

export function programPath(name: string): string {
  return join(outdir, `${name}.mjs`)
}
