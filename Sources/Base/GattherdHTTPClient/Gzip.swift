import CZlib

/// Compression in gzip's format, RFC 1952.
public enum Gzip {
    /// Returns the compressed bytes; `nil` if memory is short.
    public static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        var stream = unsafe z_stream()
        // 15 is the largest window, and 16 asks for gzip's header instead of zlib's.
        let code = unsafe deflateInit2_(
            &stream,
            Z_DEFAULT_COMPRESSION,
            Z_DEFLATED,
            15 + 16,
            8,
            Z_DEFAULT_STRATEGY,
            ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)
        )
        guard code == Z_OK else { return nil }
        defer { unsafe deflateEnd(&stream) }
        let bound = unsafe Int(deflateBound(&stream, UInt(bytes.count)))
        guard let inputCount = UInt32(exactly: bytes.count), let capacity = UInt32(exactly: bound) else { return nil }
        var isComplete = false
        // The buffers are valid for the call only, which consumes all: the capacity suffices for any input.
        let compressed = unsafe [UInt8](unsafeUninitializedCapacity: bound) { output, count in
            unsafe bytes.withUnsafeBufferPointer { input in
                unsafe stream.next_in = unsafe UnsafeMutablePointer(mutating: input.baseAddress)
                unsafe stream.avail_in = inputCount
                unsafe stream.next_out = output.baseAddress
                unsafe stream.avail_out = capacity
                isComplete = unsafe deflate(&stream, Z_FINISH) == Z_STREAM_END
            }
            count = unsafe bound - Int(stream.avail_out)
        }
        return isComplete ? compressed : nil
    }
}
