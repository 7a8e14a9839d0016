import GattherdOutputs
import Glibc

/// A named pipe with a reader; closed with the object.
///
/// Lines count as written when the reader has read them from the pipe. The thread waits meanwhile.
final class LinesPipe {
    /// The shortest and the longest wait between two checks of the pipe, in milliseconds.
    private static let waits: ClosedRange<Int32> = 1...50

    /// The longest write that the kernel does not divide: `PIPE_BUF` of pipe(7).
    private static let undividedBytes = 4096

    private let path: LinesPath
    let descriptor: Int32
    /// The rest of a line whose start is in the pipe; the next lines follow it.
    private var unfinished: ArraySlice<UInt8> = []

    init(_ path: LinesPath) throws(OutputFault) {
        self.path = path
        descriptor = unsafe open(path.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw errno == ENXIO ? Self.noReader(path) : path.fault(errno) }
    }

    deinit {
        Glibc.close(descriptor)
    }

    private static func noReader(_ path: LinesPath) -> OutputFault {
        OutputFault(.unavailable, "nothing reads the pipe '\(path.path)'; start its reader")
    }

    /// True if the path still leads to this pipe.
    var isCurrent: Bool {
        var (own, other) = (stat(), stat())
        guard unsafe fstat(descriptor, &own) == 0, unsafe stat(path.path, &other) == 0 else { return false }
        return own.st_ino == other.st_ino && own.st_dev == other.st_dev
    }

    /// Writes lines and waits until the reader has read them.
    ///
    /// After a cancellation the pipe may have the start of a line, which the next call completes.
    func append(_ text: [UInt8]) throws(OutputFault) {
        let end = unfinished.count
        var rest = unfinished + text
        let start = rest.startIndex
        while !rest.isEmpty {
            let lines = Self.wholeLines(rest)
            let count = unsafe lines.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
                unfinished = lineRest(rest, text, written: rest.startIndex - start - end)
            } else if errno == EAGAIN {
                try wait(milliseconds: Self.waits.upperBound, for: Int16(POLLOUT))
            } else if errno != EINTR {
                throw errno == EPIPE ? Self.noReader(path) : path.fault(errno)
            }
        }
        try waitForReader()
    }

    /// The next bytes to write: whole lines that the kernel writes as one, or one longer line.
    ///
    /// A killed daemon leaves no part of a line in the pipe, unless the line is longer.
    private static func wholeLines(_ rest: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard rest.count > undividedBytes else { return rest }
        let newline = UInt8(ascii: "\n")
        let end = rest.prefix(undividedBytes).lastIndex(of: newline) ?? rest.firstIndex(of: newline)
        return end.map { rest[...$0] } ?? rest
    }

    /// The rest of the line that contains the last written byte; empty if that byte ends a line.
    private func lineRest(_ rest: ArraySlice<UInt8>, _ text: [UInt8], written: Int) -> ArraySlice<UInt8> {
        // The last written byte may lie in a line that an earlier call has started.
        guard written > 0 else { return rest.prefix(-written) }
        guard text[written - 1] != UInt8(ascii: "\n") else { return [] }
        return rest.prefix { $0 != UInt8(ascii: "\n") } + [UInt8(ascii: "\n")]
    }

    private func waitForReader() throws(OutputFault) {
        var pause = Self.waits.lowerBound
        while waitingBytes > 0 {
            try wait(milliseconds: pause, for: 0)
            pause = min(pause * 2, Self.waits.upperBound)
        }
    }

    /// The number of bytes that the reader has not read.
    private var waitingBytes: Int32 {
        var count: Int32 = 0
        return unsafe ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? count : 0
    }

    /// Waits for an event, at most this long.
    private func wait(milliseconds: Int32, for events: Int16) throws(OutputFault) {
        var item = pollfd(fd: descriptor, events: events, revents: 0)
        _ = unsafe poll(&item, 1, milliseconds)
        if item.revents & Int16(POLLERR) != 0 { throw Self.noReader(path) }
        if Task.isCancelled {
            throw OutputFault(.unavailable, "the reader of the pipe '\(path.path)' is too slow; check it")
        }
    }
}
