// UUIDs and addresses are in every signature, so this module exports them.
@_exported public import GattherdGATT

@_exported public import struct GattherdModel.Timestamp
