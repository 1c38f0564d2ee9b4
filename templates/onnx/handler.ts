import { join } from 'node:path'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import {
  PredictionException,
  type Context,
  type InferenceRequest,
  type InferenceResponse,
  type InputTensor,
} from 'torchserve-ts'

/** Runs model.onnx. Its inputs and outputs are in model-config.yaml. */
export default class Onnx {
  #session!: InferenceSession

  async initialize(context: Context): Promise<void> {
    this.#session = await InferenceSession.create(join(context.properties.modelDir, 'model.onnx'), {
      // The share of this worker; 0: a thread for every core.
      intraOpNumThreads: Number(process.env['TORCHSERVE_TS_THREADS'] ?? 0),
    })
  }

  async predict({ inputs }: InferenceRequest): Promise<InferenceResponse> {
    const feeds = new Map(inputs.map((input) => [input.name, toTensor(input)]))
    const results = await this.#session.run(Object.fromEntries(feeds))
    return {
      outputs: Object.entries(results).map(([name, { dims, data }]) => ({
        name,
        datatype: 'FP32',
        shape: dims,
        data: data as Float32Array,
      })),
    }
  }
}

function toTensor({ name, datatype, shape, data }: InputTensor): Tensor {
  if (data instanceof Float32Array) return new Tensor('float32', data, shape)
  throw new PredictionException(`Input ${name} must be FP32, not ${datatype}`, 400)
}
