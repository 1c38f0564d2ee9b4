/** A kind of project. */
export interface Template {
  readonly about: string
  /** Folders below templates/; their files together are the project. */
  readonly folders: readonly string[]
  /** What its handler needs besides `npm install`. */
  readonly needs?: {
    /** A command in the project's folder that installs it. */
    readonly command?: string
    /** What it says of a model that no command can choose. */
    readonly model?: string
  }
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
      needs: { model: 'It needs a model, model.gguf in its folder: README.md says how to get one' },
    },
  ],
  [
    'python',
    {
      about: "a handler in Python, in TorchServe's worker",
      folders: ['python'],
      needs: { command: 'pip install -r requirements.txt' },
    },
  ],
])

export const TEMPLATE_NAMES = [...TEMPLATES.keys()]
