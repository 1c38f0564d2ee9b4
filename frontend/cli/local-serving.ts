import { once } from 'node:events'
import { createServer } from 'node:net'
import { KEYS } from '../config/keys.ts'
import { formatListenAddress } from '../config/listen-address.ts'
import type { Entry } from '../config/properties.ts'
import { tempDirOf } from './pid-file.ts'
import { type CurlLine, curlLines, type DeclaredTensor } from '../../common/curl-lines.ts'
import { hasTensorMethod, type ListedMethod } from '../../common/handler-methods.ts'

const MAX_PORT = 65_535

/**
 * What a command sets that serves without a configuration: all REST APIs on one port, without tokens, and the
 * others on free ones of this machine only. Overrides the configuration file.
 * @param origin the command, for messages
 * @param own further keys
 */
export function localEntries(
  origin: string,
  { host = '127.0.0.1', port }: { host?: string; port: number },
  own: Readonly<Record<string, string>>,
): Entry[] {
  const address = formatListenAddress({ kind: 'tcp', tls: false, host, port })
  // Nothing is written there.
  const logs = tempDirOf(process.env)
  const texts: Readonly<Record<string, string>> = {
    [KEYS.logLocation.name]: logs,
    [KEYS.metricsLocation.name]: logs,
    inference_address: address,
    management_address: address,
    enable_metrics_api: 'false',
    grpc_inference_address: '127.0.0.1',
    grpc_inference_port: '0',
    grpc_management_address: '127.0.0.1',
    grpc_management_port: '0',
    disable_token_authorization: 'true',
    cors_allowed_origin: 'loopback',
    default_workers_per_model: '1',
    ...own,
  }
  return Object.entries(texts).map(([name, text]) => ({ name, text, origin }))
}

/** The port if it is free on this machine, else the next one that is. Port 0 stays. */
export async function freePort(port: number): Promise<number> {
  let free = port
  while (free !== 0 && free < MAX_PORT && (await isTaken(free))) free += 1
  return free
}

/** A port that cannot be used for another reason is not taken: the start says why. */
async function isTaken(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  }
  probe.close()
  await once(probe, 'close')
  return false
}

/**
 * The command lines for a model of a running server, whose metadata says what its tensors are.
 * @param key that clients must send; undefined: none
 */
export async function modelCurlLines(
  name: string,
  methods: readonly ListedMethod[] = [],
  base: string,
  key?: string,
): Promise<CurlLine[]> {
  const url = `${base}/v2/models/${encodeURIComponent(name)}`
  const inputs = hasTensorMethod(methods) ? await declaredInputs(url, key) : []
  const lines = curlLines({ name, methods, inputs }, base)
  if (key === undefined) return lines
  const header = `-H 'authorization: Bearer ${key.replaceAll("'", "'\\''")}'`
  return lines.map(({ api, line }) => ({ api, line: line.replace('curl ', () => `curl ${header} `) }))
}

async function declaredInputs(url: string, key: string | undefined): Promise<readonly DeclaredTensor[]> {
  const response = await fetch(url, {
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  }).catch(() => undefined)
  if (response?.ok !== true) return []
  return ((await response.json()) as { inputs?: DeclaredTensor[] }).inputs ?? []
}
