// UUIDs and addresses are in every signature: who imports this module has them.
@_exported public import GattherdGATT

@_exported public import struct GattherdModel.Timestamp
