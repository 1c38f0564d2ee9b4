import { readdirSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Context } from 'torchserve-ts'
import { isObject, ownValue } from '../../common/json.ts'

export type Fields = Record<string, unknown>

/**
 * Validated settings: the section `handler` of model-config.yaml over model-settings.json, and the weights'
 * path.
 */
export interface LlamaSettings {
  /** Absolute path of the GGUF file. */
  modelPath: string
  /** Tokens per sequence; undefined: the model's training context, at most 4096. */
  contextSize: number | undefined
  /** Number of requests computed together. Default 4. */
  sequences: number
  /** Undefined: as `defaultThreads` has it. */
  threads: number | undefined
  gpu: false | 'auto' | 'cuda' | 'vulkan' | 'metal'
  /** Layers on the GPU; undefined, `auto`: as many as fit. */
  gpuLayers: number | 'auto' | 'max' | undefined
  /** Defaults for requests. */
  sampling: SamplingDefaults
  /** Jinja template for chats; undefined: the model's own, or the server's default if it has none. */
  chatTemplate: string | undefined
  /** Settings without effect. */
  warnings: readonly string[]
}

export interface SamplingDefaults {
  /** Default 128. */
  maxTokens: number
  /** 0 to 2. Default 0.8. */
  temperature: number
  /** Above 0, up to 1. Default 1. */
  topP: number
  /** 0: all. Default 40. */
  topK: number
  /** 0 to 1. Default 0. */
  minP: number
  /** Applies to tokens among the last 64; 1: none. Default 1. */
  repeatPenalty: number
}

/** A part of a model but the first, as llama.cpp's gguf-split names it. */
const LATER_PART = /-(?!00001)\d{5}-of-\d{5}\.gguf$/

const GPUS = [false, 'auto', 'cuda', 'vulkan', 'metal'] as const

/** @throws Error that names the key; the model then fails to load */
export function readSettings(
  context: Pick<Context, 'manifest' | 'modelConfig' | 'properties'>,
): LlamaSettings {
  const { config: seldon, uri, warnings } = seldonSettings(context.modelConfig)
  const config = { ...seldon, ...record(context.modelConfig['handler']) }
  const folder = uri ?? context.properties.modelDir
  const layers = gpuLayers(config['gpu_layers'])
  return {
    modelPath: weightsPath(context, folder, config),
    contextSize: config['context_size'] === undefined ? undefined : count(config, 'context_size', 0),
    sequences: count(config, 'sequences', 4),
    threads: config['threads'] === undefined ? undefined : count(config, 'threads', 0),
    gpu: gpu(config['gpu'] ?? ((layers ?? 0) === 0 ? false : 'auto')),
    gpuLayers: layers,
    sampling: {
      maxTokens: count(config, 'max_tokens', 128),
      temperature: number(config, 'temperature', 0.8, 0, 2),
      topP: number(config, 'top_p', 1, Number.MIN_VALUE, 1),
      topK: number(config, 'top_k', 40, 0, Number.MAX_SAFE_INTEGER),
      minP: number(config, 'min_p', 0, 0, 1),
      repeatPenalty: number(config, 'repeat_penalty', 1, Number.MIN_VALUE, 10),
    },
    chatTemplate: chatTemplate(context.properties.modelDir, config['chat_template']),
    warnings,
  }
}

/** The template itself, or a file with it in the model's folder. */
function chatTemplate(modelDir: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '')
    throw new Error(
      'handler.chat_template in model-config.yaml must be a Jinja template or the name of a file',
    )
  return value.includes('{{') || value.includes('{%') ? value : readFileSync(resolve(modelDir, value), 'utf8')
}

function number(config: Fields, key: string, absent: number, min: number, max: number): number {
  const value = ownValue(config, key) ?? absent
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new Error(`handler.${key} in model-config.yaml must be a number from ${min} to ${max}`)
}

/** @param place a folder, or the file */
function weightsPath(context: Pick<Context, 'manifest'>, place: string, config: Fields): string {
  const named = record(context.manifest['model'])['serializedFile'] ?? config['model_path']
  const isFile = /\.gguf$/i.test(place)
  if (typeof named === 'string' && named !== '') return resolve(isFile ? dirname(place) : place, named)
  if (isFile) return place
  // The runtime finds the further parts of a model by the name of the first.
  const found = readdirSync(place).filter((name) => name.endsWith('.gguf') && !LATER_PART.test(name))
  if (found.length === 1) return resolve(place, found[0]!)
  const what = found.length === 0 ? 'none' : `${found.length}`
  throw new Error(
    `The model must have one .gguf file, found ${what}; name one as serialized file or as handler.model_path in model-config.yaml`,
  )
}

function count(config: Fields, key: string, absent: number): number {
  const value = ownValue(config, key) ?? absent
  if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value
  throw new Error(`handler.${key} in model-config.yaml must be a whole number above 0`)
}

function gpuLayers(value: unknown): LlamaSettings['gpuLayers'] {
  if (value === undefined || value === 'auto') return value
  if (value === 'all') return 'max'
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value
  throw new Error('handler.gpu_layers in model-config.yaml must be a whole number, all or auto')
}

function gpu(value: unknown): LlamaSettings['gpu'] {
  const known = GPUS.find((name) => name === value)
  if (known !== undefined) return known
  throw new Error(`handler.gpu in model-config.yaml must be one of ${GPUS.join(', ')}`)
}

/** Settings of Seldon's local runtime, translated for this handler (docs/openai.md). */
interface SeldonSettings {
  /** Keys of the section `handler` of model-config.yaml. */
  config: Fields
  /** Folder or file of the weights; undefined: the model's own folder. */
  uri: string | undefined
  /** Settings without effect, one line each. */
  warnings: string[]
}

const WHERE = 'parameters.extra in model-settings.json'
const BACKENDS = ['vllm', 'deepspeed', 'transformers']
const MODEL_TYPES = ['chat.completions', 'completions', 'embeddings']
const SELDON_GPUS: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([
  ['cpu', false],
  ['cuda', 'cuda'],
  ['auto', 'auto'],
])

/** Seldon's names for the handler's keys, in model_settings and in its default_generate_kwargs. */
const KEYS: ReadonlyMap<string, string> = new Map([
  ['model', 'model_path'],
  ['max_model_len', 'context_size'],
  ['max_num_seqs', 'sequences'],
  ['repetition_penalty', 'repeat_penalty'],
])
const OWN = [
  ...['model_path', 'context_size', 'sequences', 'threads', 'gpu', 'gpu_layers', 'chat_template'],
  ...['max_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'repeat_penalty'],
]
const KNOWN_IN_EXTRA = ['backend', 'config', 'prompt_utils']
const KNOWN_IN_CONFIG = ['model_type', 'model_settings']
const HANDLED = ['device', 'tensor_parallel_size', 'default_generate_kwargs']

/**
 * Reads `{ backend, config: { model_type, model_settings } }` of a model-settings.json (Seldon's LLM module,
 * "Local"). Ignores which backend it names.
 * @throws Error that names the key, for settings that are not supported
 */
function seldonSettings(modelConfig: Readonly<Fields>): SeldonSettings {
  const parameters = record(record(modelConfig['modelSettings'])['parameters'])
  const extra = record(parameters['extra'])
  const settings = record(record(extra['config'])['model_settings'])
  const kwargs = record(settings['default_generate_kwargs'])
  refuse(extra, settings)
  const given = { ...kwargs, ...settings }
  const known = new Map<string, unknown>()
  const idle: string[] = []
  for (const [key, value] of Object.entries(given)) {
    const own = KEYS.get(key) ?? key
    if (HANDLED.includes(key) || value === null) continue
    if (OWN.includes(own)) known.set(own, value)
    else idle.push(key)
  }
  if (settings['device'] !== undefined) known.set('gpu', gpuOf(settings['device']))
  const backend = extra['backend']
  const warnings = [...unknown(extra), ...idle].map((key) => `${WHERE}: ${key} has no effect here`)
  if (backend !== undefined)
    warnings.unshift(`${WHERE}: backend ${shown(backend)} is replaced by node-llama-cpp`)
  const uri = typeof parameters['uri'] === 'string' ? parameters['uri'] : undefined
  return { config: Object.fromEntries(known), uri, warnings }
}

/** Other keys with a value. */
function unknown(extra: Fields): string[] {
  const others = (fields: Fields, known: string[]): string[] =>
    Object.entries(fields).flatMap(([key, value]) => (known.includes(key) || value === null ? [] : [key]))
  return [
    ...others(extra, KNOWN_IN_EXTRA),
    ...others(record(extra['config']), KNOWN_IN_CONFIG).map((key) => `config.${key}`),
  ]
}

function refuse(extra: Fields, settings: Fields): void {
  const { backend, prompt_utils: prompts } = extra
  const type = record(extra['config'])['model_type']
  const { model, tensor_parallel_size: parallel } = settings
  if (backend !== undefined && !BACKENDS.includes(shown(backend)))
    throw new Error(`${WHERE}: backend must be one of ${BACKENDS.join(', ')}`)
  if (type !== undefined && !MODEL_TYPES.includes(shown(type)))
    throw new Error(`${WHERE}: model_type must be one of ${MODEL_TYPES.join(', ')}`)
  if (prompts !== undefined && prompts !== null)
    throw new Error(`${WHERE}: prompt_utils is not supported; use config.model_settings.chat_template`)
  if (model !== undefined && !/\.gguf$/i.test(shown(model)))
    throw new Error(`${WHERE}: model must name a .gguf file, found ${shown(model)}`)
  if (parallel !== undefined && parallel !== 1) throw new Error(`${WHERE}: tensor_parallel_size must be 1`)
}

function gpuOf(device: unknown): unknown {
  if (SELDON_GPUS.has(device)) return SELDON_GPUS.get(device)
  throw new Error(`${WHERE}: device must be one of ${[...SELDON_GPUS.keys()].join(', ')}`)
}

function shown(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200)
}

/** A section of a configuration; empty if it is not a map. */
export function record(value: unknown): Fields {
  return isObject(value) ? value : {}
}
