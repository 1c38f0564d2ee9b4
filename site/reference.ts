import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { status as Status } from '@grpc/grpc-js'
import { execa } from 'execa'
import { parse } from 'yaml'
import { ERROR_CODES, ServeError } from '../common/errors.ts'
import { commandNames, runCli } from '../frontend/cli/main.ts'
import * as v2Grpc from '../frontend/dialects/open-inference/grpc-errors.ts'
import * as v2Rest from '../frontend/dialects/open-inference/rest-errors.ts'
import { openaiFailure } from '../frontend/dialects/openai/rest-errors.ts'
import * as torchserveGrpc from '../frontend/dialects/torchserve/grpc-errors.ts'
import * as torchserveRest from '../frontend/dialects/torchserve/rest-errors.ts'
import { ownFamilies } from '../frontend/observe/metrics/own-families.ts'
import { Refusals } from '../frontend/observe/metrics/refusals.ts'
import { docsDir } from '../frontend/package-info.ts'
import { writeHandlerApi } from './handler-api.ts'

const ROOT = join(import.meta.dirname, '..')

/**
 * The pages that are made from the code, with their path in the site.
 * @param api folder for the pages of the handler API, which TypeDoc writes itself
 */
export async function referencePages(api: string): Promise<[path: string, text: string][]> {
  const [commands] = await Promise.all([commandsPage(), writeHandlerApi(ROOT, api)])
  return [
    ['reference/commands.md', commands],
    ['reference/errors.md', errorsPage()],
    ['reference/metrics.md', metricsPage()],
  ]
}

/** What each command prints for --help. */
async function commandsPage(): Promise<string> {
  const sections = [section('torchserve-ts', await help([]))]
  for (const name of commandNames()) {
    const text = await help([name])
    sections.push(section(`torchserve-ts ${name}`, text))
    for (const sub of subcommands(text))
      sections.push(section(`torchserve-ts ${name} ${sub}`, await help([name, sub])))
  }
  for (const [command, file] of [
    ['torch-model-archiver-ts', 'cli.ts'],
    ['torch-workflow-archiver-ts', 'workflow-cli.ts'],
  ] as const) {
    const script = join(ROOT, 'model-archiver', file)
    const { stdout } = await execa(process.execPath, ['--import', 'tsx', script, '--help'], { cwd: ROOT })
    sections.push(section(command, stdout))
  }
  return ['# Commands\n\nThis is what the commands print for `--help`.', ...sections].join('\n\n')
}

async function help(words: readonly string[]): Promise<string> {
  const lines: string[] = []
  const output = { out: (line: string) => lines.push(line), err: (line: string) => lines.push(line) }
  const loadServer = () => Promise.reject(new Error('--help starts no server'))
  await runCli([...words, '--help'], { loadServer, output })
  return lines.join('\n')
}

function subcommands(text: string): string[] {
  const [, commands = ''] = /^Commands:\n((?: {2}.*\n?)+)/m.exec(text) ?? []
  return [...commands.matchAll(/^ {2}(\w[\w-]*)/gm)]
    .map((match) => match[1]!)
    .filter((name) => name !== 'help')
}

function section(command: string, text: string): string {
  return `## ${command}\n\n\`\`\`text\n${text.replaceAll(docsDir, 'docs').trim()}\n\`\`\``
}

/** Each error code, with what a client of each API gets. */
function errorsPage(): string {
  const source = readFileSync(join(ROOT, 'common', 'errors.ts'), 'utf8')
  const rows = ERROR_CODES.map((code) => {
    const error = new ServeError(code, 'message')
    const torchserve = torchserveRest.errorAnswer(error)
    const openai = openaiFailure(error)
    const { error: openaiError } = JSON.parse(openai.json) as { error: { type: string; code: string | null } }
    return [
      `\`${code}\``,
      new RegExp(`'${code}', // (.*?)(, see .*)?\n`).exec(source)?.[1] ?? '',
      `${torchserve.status} ${torchserve.type}`,
      Status[torchserveGrpc.inferenceError(error).code],
      String(v2Rest.errorAnswer(error).status),
      Status[v2Grpc.callError(error).code],
      `${openai.status} ${openaiError.code ?? openaiError.type}`,
    ]
  })
  const head = ['Code', 'Meaning', 'TorchServe', 'gRPC', 'V2', 'V2 gRPC', 'OpenAI']
  return `# Error codes

Every failure has one of these codes inside the server. Each API has its own statuses. A status that the handler
chooses (\`HANDLER_REJECTED\`) passes unchanged.

${table([head, ...rows])}
`
}

interface Declared {
  readonly name: string
  readonly unit: string
  readonly dimensions: readonly string[]
}

function metricsPage(): string {
  const declared = parse(readFileSync(join(ROOT, 'configs', 'metrics.yaml'), 'utf8')) as Record<
    'ts_metrics' | 'model_metrics',
    Record<string, readonly Declared[]>
  >
  const rowsOf = (of: Record<string, readonly Declared[]>): string[][] =>
    Object.entries(of).flatMap(([kind, metrics]) =>
      metrics.map(({ name, unit, dimensions }) => [`\`${name}\``, kind, unit, dimensions.join(', ')]),
    )
  const head = ['Metric', 'Kind', 'Unit', 'Dimensions']
  const own = [...ownFamilies([], new Refusals())].map(({ name, kind, help: text }) => [
    `\`${name}\``,
    kind,
    text,
  ])
  return `# Metrics

[Metrics and logs](../metrics-and-logs.md) says how to read them.

## Metrics of this server

${table([['Metric', 'Kind', 'Meaning'], ...own])}

## Metrics of TorchServe

${table([head, ...rowsOf(declared.ts_metrics)])}

## Metrics of handlers

${table([head, ...rowsOf(declared.model_metrics)])}
`
}

function table([head, ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ').replaceAll('<', '&lt;')} |`
  return [line(head!), `|${'---|'.repeat(head!.length)}`, ...rows.map(line)].join('\n')
}
