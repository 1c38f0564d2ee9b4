import { isObject, ownValue, parseJson } from '../../../common/json.ts'
import { runProgram } from '../../../common/start-program.ts'

/** A GPU, or a MIG device of one, as the vendor's tool lists it. */
export interface Accelerator {
  /** How the vendor's variable names it: its UUID, or its index. */
  readonly name: string
  /** Index of the GPU. A MIG device has that of its GPU. */
  readonly gpu: string
}

/** What a GPU does; undefined: its tool does not say. */
export interface Usage {
  /** Index of the GPU. */
  readonly gpu: string
  /** Percent. */
  readonly utilization: number | undefined
  /** Percent. */
  readonly memoryUtilization: number | undefined
  /** MiB. */
  readonly memoryUsed: number | undefined
}

/** The tool of one vendor (TorchServe's org.pytorch.serve.device.utils). */
export interface Vendor {
  readonly tool: string
  /** The variables that restrict a process to some of its devices. The server obeys the first one. */
  readonly variables: readonly [string, ...string[]]
  /** What the driver makes below /dev for the first GPU, or for all; absent: nothing known. */
  readonly node?: string
  /** Its devices in PyTorch: `cuda:0`, `xpu:0`. */
  readonly device: string
  readonly listArgs: readonly string[]
  readonly usageArgs: readonly string[]
  list(output: string): Accelerator[]
  usage(output: string): Usage[]
}

const NVIDIA: Vendor = {
  tool: 'nvidia-smi',
  node: 'nvidia0',
  variables: ['CUDA_VISIBLE_DEVICES'],
  device: 'cuda',
  listArgs: ['-L'],
  usageArgs: [
    '--query-gpu=index,utilization.gpu,utilization.memory,memory.used',
    '--format=csv,noheader,nounits',
  ],
  list: (output) => {
    const found: (Accelerator & { readonly isMig: boolean })[] = []
    for (const line of output.split('\n')) {
      const [, gpu, name] = /^GPU (\d+):.*\(UUID: ([\w-]+)\)/.exec(line) ?? []
      const [, mig] = /^\s+MIG .*\(UUID: (MIG-[\w/-]+)\)/.exec(line) ?? []
      if (gpu !== undefined) found.push({ name: name!, gpu, isMig: false })
      else if (mig !== undefined) found.push({ name: mig, gpu: found.at(-1)?.gpu ?? '', isMig: true })
    }
    // A GPU that is divided can only be used by its parts.
    const divided = new Set(found.filter(({ isMig }) => isMig).map(({ gpu }) => gpu))
    return found
      .filter(({ gpu, isMig }) => isMig || !divided.has(gpu))
      .map(({ name, gpu }) => ({ name, gpu }))
  },
  usage: (output) =>
    rowsOf(output)
      .filter(([gpu]) => /^\d+$/.test(gpu ?? ''))
      .map(([gpu, busy, memory, used]) => usageOf(gpu!, busy, memory, used)),
}

const AMD: Vendor = {
  tool: 'rocm-smi',
  node: 'kfd',
  variables: ['HIP_VISIBLE_DEVICES'],
  device: 'cuda',
  listArgs: ['--showproductname', '-P', '--json'],
  usageArgs: [
    ...['--showid', '--showproductname', '--showuse', '--showmemuse', '--showmeminfo', 'vram'],
    ...['-P', '--json'],
  ],
  list: (output) => cardsOf(output).map(([gpu]) => ({ name: gpu, gpu })),
  usage: (output) =>
    cardsOf(output).map(([gpu, card]) => {
      const bytes = numberOf(ownValue(card, 'VRAM Total Used Memory (B)'))
      const used = bytes === undefined ? undefined : Math.floor(bytes / 1024 / 1024)
      return usageOf(gpu, ownValue(card, 'GPU use (%)'), ownValue(card, 'GPU Memory Allocated (VRAM%)'), used)
    }),
}

const INTEL: Vendor = {
  tool: 'xpu-smi',
  // TorchServe's variable, and the one that Intel's runtime (Level Zero) reads.
  variables: ['XPU_VISIBLE_DEVICES', 'ZE_AFFINITY_MASK'],
  device: 'xpu',
  listArgs: ['discovery', '--dump', '1,2,16'],
  usageArgs: ['dump', '-d', '-1', '-n', '1', '-m', '0,5'],
  list: (output) =>
    named(output, 'deviceid')
      .filter(([gpu]) => /^\d+$/.test(gpu!))
      .map(([gpu]) => ({ name: gpu!, gpu: gpu! })),
  usage: (output) =>
    named(output, 'deviceid', 'gpuutilization(%)', 'gpumemoryutilization(%)')
      .filter(([gpu]) => /^\d+$/.test(gpu!))
      .map(([gpu, busy, memory]) => usageOf(gpu!, busy, memory, undefined)),
}

/** In the order in which TorchServe looks for them (SystemInfo.java). */
export const VENDORS: readonly Vendor[] = [AMD, NVIDIA, INTEL]

const LIMIT_MS = 20_000

/**
 * The output of a vendor's tool.
 * @returns undefined: it is not installed
 * @throws Error with its own words when it fails
 */
export async function runTool(
  tool: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const { stdout, stderr, failure, problem } = await runProgram(tool, args, { env, timeoutMs: LIMIT_MS })
  if (failure?.code === 'ENOENT') return undefined
  if (problem === undefined) return stdout
  const words = `${stdout}\n${stderr}`.split('\n').find((line) => line.trim() !== '')
  throw new Error(words?.trim() ?? `${tool}: ${problem}`)
}

/** What the GPUs do now; undefined: no tool of a vendor is installed; empty: it fails, or there are none. */
export async function measureAccelerators(env = process.env): Promise<Usage[] | undefined> {
  let found: Usage[] | undefined
  for (const { tool, usageArgs, usage } of VENDORS) {
    const output = await runTool(tool, usageArgs, env).catch(() => '')
    if (output === undefined) continue
    found = usage(output)
    if (found.length > 0) return found
  }
  return found
}

function usageOf(gpu: string, utilization: unknown, memoryUtilization: unknown, memoryUsed: unknown): Usage {
  return {
    gpu,
    utilization: numberOf(utilization),
    memoryUtilization: numberOf(memoryUtilization),
    memoryUsed: numberOf(memoryUsed),
  }
}

/** Undefined for `[N/A]`, `N/A` and the like. */
function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() === '' ? NaN : Number(value ?? NaN)
  return Number.isNaN(number) ? undefined : number
}

/** `card0` and so on, with their values. Lines before the JSON are warnings. */
function cardsOf(output: string): [string, Record<string, unknown>][] {
  const json = parseJson(output.slice(Math.max(0, output.indexOf('{'))))
  return Object.entries(isObject(json) ? json : {}).flatMap(([key, card]) => {
    const id = /^card(\d+)$/.exec(key)?.[1]
    return id !== undefined && isObject(card) ? [[id, card]] : []
  })
}

function rowsOf(output: string): string[][] {
  return output.split('\n').map((line) => line.split(',').map((cell) => cell.trim()))
}

/** The columns of a table with these headings, compared without blanks and in lower case. */
function named(output: string, ...headings: string[]): (string | undefined)[][] {
  const [first = [], ...rows] = rowsOf(output)
  const titles = first.map((title) => title.replaceAll(/\s/g, '').toLowerCase())
  return rows.map((row) => headings.map((heading) => row[titles.indexOf(heading)] ?? ''))
}
