/** A kind of project. */
export interface Template {
  readonly about: string
  /** Folders below templates/; their files together are the project. */
  readonly folders: readonly string[]
}

export const TEMPLATES: ReadonlyMap<string, Template> = new Map([
  [
    'text-stream',
    { about: 'a handler in TypeScript that streams text', folders: ['typescript', 'text-stream'] },
  ],
  ['onnx', { about: 'an ONNX model, with onnxruntime-node', folders: ['typescript', 'onnx'] }],
  [
    'gguf-chat',
    {
      about: 'a chat with a .gguf file, over the OpenAI API, with node-llama-cpp',
      folders: ['typescript', 'gguf-chat'],
    },
  ],
  ['python', { about: "a handler in Python, in TorchServe's worker", folders: ['python'] }],
])

export const TEMPLATE_NAMES = [...TEMPLATES.keys()]
