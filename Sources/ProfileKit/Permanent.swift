/// Memory of the C table: made once, never freed, because the library is never unloaded.
enum Permanent {
    static func text(_ text: String) -> UnsafePointer<CChar> {
        unsafe array(Array(text.utf8CString))
    }

    static func text(_ text: String?) -> UnsafePointer<CChar>? {
        guard let text else { return nil }
        return unsafe self.text(text) as UnsafePointer<CChar>
    }

    static func value<Value>(_ value: Value) -> UnsafePointer<Value> {
        let memory = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        unsafe memory.initialize(to: value)
        return unsafe UnsafePointer(memory)
    }

    static func array<Value>(_ values: [Value]) -> UnsafePointer<Value> {
        let memory = UnsafeMutablePointer<Value>.allocate(capacity: max(1, values.count))
        for (index, value) in values.enumerated() { unsafe (memory + index).initialize(to: value) }
        return unsafe UnsafePointer(memory)
    }
}
