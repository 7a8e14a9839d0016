/// A value that only one event loop's thread may touch; anywhere else is a programming error and stops the process.
///
/// `@unchecked Sendable` is safe: the value is reached only on the loop's thread, which is checked each time.
public final class LoopConfined<Value>: @unchecked Sendable {
    private var storage: Value
    private let loop: EventLoop

    /// Takes `value` over, for the thread of `loop`.
    public init(_ value: sending Value, to loop: EventLoop) {
        storage = value
        self.loop = loop
    }

    /// The value; on the loop's thread only.
    public var value: Value {
        _read {
            loop.checkIsolated()
            yield storage
        }
        _modify {
            loop.checkIsolated()
            yield &storage
        }
    }
}
