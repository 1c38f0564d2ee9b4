/**
 * Checks which points of the stream contract a server keeps, in each dialect:
 * `npm run conformance -- --rest URL --grpc HOST:PORT ...` (docs/internals/promises.md). One line per point;
 * ends with `N passed, N failed`.
 */
import { Command } from 'commander'
import type { Dialect } from './dialect.ts'
import { FORMS } from './dialects/forms.ts'
import {
  MLSERVER_INFER,
  MLSERVER_STREAM,
  PREDICTIONS,
  STREAM_PREDICTIONS,
  TRITON_INFER,
  TRITON_STREAM,
} from './dialects/grpc-forms.ts'
import { GrpcDialect, type GrpcForm } from './dialects/grpc.ts'
import { HttpDialect } from './dialects/http.ts'
import type { Models } from './points.ts'
import { report } from './report.ts'

interface Options extends Models {
  rest?: string
  torchserveGrpc?: string
  grpc?: string
  triton?: string
  only?: string[]
}

function dialects({ rest, torchserveGrpc, grpc, triton }: Options): Dialect[] {
  const over = (target: string | undefined, ...forms: GrpcForm[]): Dialect[] =>
    target === undefined ? [] : forms.map((form) => new GrpcDialect(target, form))
  const http = rest === undefined ? [] : FORMS.map((form) => new HttpDialect(rest.replace(/\/$/, ''), form))
  return [
    ...http,
    ...over(torchserveGrpc, STREAM_PREDICTIONS, PREDICTIONS),
    ...over(grpc, MLSERVER_STREAM, MLSERVER_INFER),
    ...over(triton, TRITON_STREAM, TRITON_INFER),
  ]
}

const command = new Command('conformance')
  .description('Prints which points of the stream contract a server keeps, in each dialect.')
  .option('--rest <url>', 'TorchServe, V2 and OpenAI over REST')
  .option('--torchserve-grpc <host:port>', "TorchServe's StreamPredictions")
  .option('--grpc <host:port>', "V2's ModelStreamInfer as MLServer and Seldon have it")
  .option('--triton <host:port>', "V2's ModelStreamInfer as Triton has it")
  .option('--model <name>', 'a model that counts as model-store/count does', 'count')
  .option('--limited <name>', 'point 6: the same with limits (docs/internals/promises.md)')
  .option('--ranked <name>', 'point 8: the same in groups of ranks')
  .option('--only <words...>', 'only dialects whose names contain one of these')
  .parse()
const options = command.opts<Options>()
const all = dialects(options)
if (all.length === 0) command.error('Name at least one of --rest, --torchserve-grpc, --grpc, --triton')
const wanted = all.filter(({ name }) => options.only?.some((word) => name.includes(word)) ?? true)
const { passed, failed } = await report(wanted, options, console.log)
for (const dialect of all) dialect.close()
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
