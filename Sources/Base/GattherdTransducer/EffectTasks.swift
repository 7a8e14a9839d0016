/// The running tasks of a runner, by number and by identifier.
struct EffectTasks {
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var numbers: [EffectID: Int] = [:]
    private var lastNumber = 0
    private var timer: (deadline: Duration, task: Task<Void, Never>)?

    /// Starts a task and returns its number; `operation` receives the number.
    mutating func start(_ id: EffectID?, _ operation: @escaping @Sendable (Int) async -> Void) {
        lastNumber += 1
        let number = lastNumber
        if let id { numbers[id] = number }
        tasks[number] = Task { await operation(number) }
    }

    /// Returns the number of the next task.
    var next: Int { lastNumber + 1 }

    /// Cancels the task of an identifier; the task stays known until it ends.
    ///
    /// - Parameters:
    ///   - id: The identifier.
    ///   - silence: Called with the task's number before it is cancelled.
    mutating func cancel(_ id: EffectID, _ silence: (Int) -> Void) {
        guard let number = numbers.removeValue(forKey: id) else { return }
        silence(number)
        tasks[number]?.cancel()
    }

    /// Removes tasks that have ended.
    mutating func remove(_ ended: [Int]) {
        for number in ended { tasks[number] = nil }
        numbers = numbers.filter { tasks[$0.value] != nil }
    }

    /// Replaces the timer if the deadline differs.
    mutating func setTimer(_ deadline: Duration?, _ operation: @escaping @Sendable (Duration) async -> Void) {
        guard timer?.deadline != deadline else { return }
        timer?.task.cancel()
        timer = deadline.map { deadline in (deadline, Task { await operation(deadline) }) }
    }

    /// Cancels everything and waits for the end of all tasks.
    mutating func cancelAll() async {
        timer?.task.cancel()
        for task in tasks.values { task.cancel() }
        await timer?.task.value
        for task in tasks.values { await task.value }
        self = EffectTasks()
    }
}
