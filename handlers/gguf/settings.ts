import { readdirSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Context } from 'torchserve-ts'
import { record } from './record.ts'
import { seldonSettings } from './seldon-settings.ts'

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

type NumberKey = 'temperature' | 'top_p' | 'top_k' | 'min_p' | 'repeat_penalty'
type CountKey = 'context_size' | 'sequences' | 'threads' | 'max_tokens'

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

function number(
  config: Record<string, unknown>,
  key: NumberKey,
  absent: number,
  min: number,
  max: number,
): number {
  const value = config[key] ?? absent
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new Error(`handler.${key} in model-config.yaml must be a number from ${min} to ${max}`)
}

/** @param place a folder, or the file */
function weightsPath(
  context: Pick<Context, 'manifest'>,
  place: string,
  config: Record<string, unknown>,
): string {
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

function count(config: Record<string, unknown>, key: CountKey, absent: number): number {
  const value = config[key] ?? absent
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
