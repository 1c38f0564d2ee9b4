#!/usr/bin/env node
import { refuseOldNode } from '../common/node-version.ts'

refuseOldNode()
await import('./workflow-command.ts')
