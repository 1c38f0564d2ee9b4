#!/usr/bin/env node
import { refuseOldNode } from '../common/node-version.ts'

refuseOldNode()
await import('./model-command.ts')
