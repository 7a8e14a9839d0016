// UUIDs, addresses and logs are in signatures, so this module exports them.
@_exported public import GattherdGATT

@_exported public import struct GattherdLog.Log
@_exported public import struct GattherdLog.LogEntry
@_exported public import struct GattherdLog.LogField
@_exported public import enum GattherdLog.LogLevel
@_exported public import struct GattherdModel.Timestamp
