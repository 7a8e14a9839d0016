public import FoundationEssentials

/// The raw octets.
extension Data: Readable, Writable {}
