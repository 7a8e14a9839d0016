/// The memory of one C table: trivial values that are freed together.
@safe struct TableMemory {
    private var blocks: [UnsafeMutableRawPointer] = unsafe []

    mutating func text(_ text: String) -> UnsafePointer<CChar>? {
        unsafe array(Array(text.utf8CString))
    }

    mutating func text(_ text: String?) -> UnsafePointer<CChar>? {
        guard let text else { return nil }
        return unsafe array(Array(text.utf8CString))
    }

    mutating func value<Value: BitwiseCopyable>(_ value: Value) -> UnsafePointer<Value> {
        unsafe array([value])
    }

    mutating func array<Value: BitwiseCopyable>(_ values: [Value]) -> UnsafePointer<Value> {
        let memory = UnsafeMutablePointer<Value>.allocate(capacity: max(1, values.count))
        for (index, value) in values.enumerated() { unsafe (memory + index).initialize(to: value) }
        unsafe blocks.append(UnsafeMutableRawPointer(memory))
        return unsafe UnsafePointer(memory)
    }

    /// Frees all memory; pointers into it become invalid.
    func free() {
        unsafe blocks.forEach { unsafe $0.deallocate() }
    }
}
