import { describe } from '@jest/globals'
import { modelFolder } from '../support/model-folder.ts'
import { testLeftProcesses } from './left-processes.ts'

describe('What a TypeScript handler started does not outlive its worker', () => {
  testLeftProcesses((name, config) => modelFolder(name, 'parent', config), {})
})
