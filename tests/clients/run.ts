/**
 * Real clients against a running server: tritonclient, kserve's client, MLServer's own code, httpx-sse,
 * Seldon's tensors, OpenAI's clients for Python and Node, Vercel's AI SDK, and LangChain: `npm run
 * test:clients [-- PROGRAM...]`. They are installed into .build once. One line per check; ends with `N
 * passed, N failed`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../examples/demo/free-ports.ts'
import { DemoServer } from '../../examples/demo/server.ts'
import { install } from './install.ts'
import { runProgram, type Counts } from './program.ts'
import { makeStore, STORE } from './store.ts'

const PROGRAMS = [
  'python/triton_http.py',
  'python/triton_grpc.py',
  'python/mlserver_grpc.py',
  'python/mlserver_docs.py',
  'python/kserve_client.py',
  'python/sse.py',
  'python/seldon.py',
  'python/openai_client.py',
  'node/openai_client.mjs',
  'node/frameworks.mjs',
]
const START_LIMIT_MS = 120_000

async function main(programs: string[], counts: Counts): Promise<void> {
  await install()
  const folder = await mkdtemp(join(tmpdir(), 'torchserve-ts-clients-'))
  try {
    const store = join(folder, 'store')
    await makeStore(store)
    const [mlserver, triton] = await freePorts(2)
    const signal = AbortSignal.timeout(START_LIMIT_MS)
    const config = {
      open_inference_grpc_port: mlserver!,
      triton_grpc_port: triton!,
      enable_model_api: true,
      // The paths that TorchServe shares with the protocol have the protocol's meaning.
      ts_open_inference_protocol: true,
    }
    const server = await DemoServer.start({ modelStore: store, models: [...STORE], config, signal })
    try {
      for (const model of STORE) await server.modelReady(model, signal)
      const targets = {
        REST_URL: `http://127.0.0.1:${server.inferencePort}`,
        MANAGEMENT_URL: `http://127.0.0.1:${server.managementPort}`,
        MLSERVER_TARGET: `127.0.0.1:${mlserver!}`,
        TRITON_TARGET: `127.0.0.1:${triton!}`,
      }
      for (const program of programs) await runProgram(program, targets, counts)
    } finally {
      await server.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const counts: Counts = { passed: 0, failed: 0 }
const wanted = process.argv.slice(2)
const programs = PROGRAMS.filter((each) => wanted.length === 0 || wanted.some((word) => each.includes(word)))
try {
  await main(programs, counts)
} catch (error) {
  counts.failed += 1
  console.log(`FAILED the run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
}
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1
