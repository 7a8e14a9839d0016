public import FoundationEssentials

/// Octets as they are.
extension Data: Readable, Writable {}
