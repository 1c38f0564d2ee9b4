import type { OtfLoad } from '../../../../frontend/workers/python/otf/encode.ts'

/** A frame of a frontend, read as OTFMessageEncoder in pytorch/serve writes it, with nothing of our codec. */
export type Frame = { load: OtfLoad } | { requests: FrameRequest[] }

interface FrameRequest {
  requestId: string
  headers: [string, string][]
  parts: { name: string; contentType: string; data: Buffer }[]
}

export function readFrame(bytes: Buffer): Frame {
  let at = 1
  const int = (): number => {
    at += 4
    return bytes.readInt32BE(at - 4)
  }
  const take = (size: number): Buffer => {
    at += size
    return bytes.subarray(at - size, at)
  }
  const text = (): string => take(int()).toString()
  /** Entries, each begun by a length; -1 is the end. */
  const list = <T>(read: (first: string) => T): T[] => {
    const all: T[] = []
    for (let size = int(); size !== -1; size = int()) all.push(read(take(size).toString()))
    return all
  }
  const frame: Frame =
    bytes[0] === 0x4c
      ? {
          load: {
            ...{ modelName: text(), modelDir: text(), batchSize: int(), handler: text(), gpuId: int() },
            ...{ envelope: text(), limitMaxImagePixels: take(1)[0] === 1 },
          },
        }
      : {
          requests: list((requestId) => ({
            requestId,
            headers: list((name): [string, string] => [name, text()]),
            parts: list((name) => ({ name, contentType: text(), data: take(int()) })),
          })),
        }
  if (at !== bytes.byteLength) throw new Error(`${bytes.byteLength - at} bytes are left`)
  return frame
}
