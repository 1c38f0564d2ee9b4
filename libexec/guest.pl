# Starts a program that cannot leave its place: a child of this one sets limits, gives rights up for good, and becomes
# the program. This one stays: nothing that the program started outlives it (see `keep`).
#
#   perl guest.pl probe                     says what the system offers, as "name value" lines
#   perl guest.pl [RULE...] -- PROGRAM ...  rules: see %RULES. What cannot be done ends it with status 126.
#
# It uses nothing but the core of Perl, which Debian and Ubuntu always have, because it must start within
# milliseconds and Landlock only holds what a process starts after it. docs/security.md says what it stops.
use strict;
use warnings;

my %BY_MACHINE = (
    x86_64 => {
        audit => 0xC000003E, x32 => 0x40000000,
        prctl => 157, capset => 126, prlimit64 => 302,
        unshare => 272, kill => 62, tkill => 200, rt_sigqueueinfo => 129,
        socket => 41, connect => 42, ptrace => 101, process_vm_readv => 310, process_vm_writev => 311,
        keyctl => 250, add_key => 248, request_key => 249, bpf => 321, perf_event_open => 298, userfaultfd => 323,
        setns => 308, mount => 165, truncate => 76,
        chmod => 90, fchmodat => 268, chown => 92, lchown => 94, fchownat => 260,
        utime => 132, utimes => 235, futimesat => 261, utimensat => 280,
        setxattr => 188, lsetxattr => 189, removexattr => 197, lremovexattr => 198,
        fchmod => 91, fchown => 93, fsetxattr => 190,
        shmget => 29, semget => 64, msgget => 68, mq_open => 240,
    },
    aarch64 => {
        audit => 0xC00000B7, x32 => 0,
        prctl => 167, capset => 91, prlimit64 => 261,
        unshare => 97, kill => 129, tkill => 130, rt_sigqueueinfo => 138,
        socket => 198, connect => 203, ptrace => 117, process_vm_readv => 270, process_vm_writev => 271,
        keyctl => 219, add_key => 217, request_key => 218, bpf => 280, perf_event_open => 241, userfaultfd => 282,
        setns => 268, mount => 40, truncate => 45,
        fchmodat => 53, fchownat => 54, utimensat => 88,
        setxattr => 5, lsetxattr => 6, removexattr => 14, lremovexattr => 15,
        fchmod => 52, fchown => 55, fsetxattr => 7,
        shmget => 194, semget => 190, msgget => 186, mq_open => 180,
    },
);
# The same number on every machine.
my %SAME = (landlock_create_ruleset => 444, landlock_add_rule => 445, landlock_restrict_self => 446,
    io_uring_setup => 425, pidfd_send_signal => 424, pidfd_getfd => 438, close_range => 436, fchmodat2 => 452,
    setxattrat => 463, removexattrat => 466);

# Rights of Landlock by the version of its interface that brought them.
my @FS_BY_ABI = (0, 0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF);
use constant { EXECUTE => 1, WRITE_FILE => 2, READ_FILE => 4, READ_DIR => 8, TRUNCATE => 0x4000, IOCTL => 0x8000 };
use constant ON_FILES => EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL;
use constant { NO_NEW_PRIVS => 38, CHILD_SUBREAPER => 36, SIGNAL_OF_PARENTS_DEATH => 1 };
use constant ALLOWED => [0x06, 0, 0, 0x7FFF0000];
use constant REFUSED => [0x06, 0, 0, 0x50001]; # EPERM
use constant UNSUPPORTED => [0x06, 0, 0, 0x5005F]; # EOPNOTSUPP
# Bits of a mode that let others write, or become the server's user.
use constant OPEN_TO_OTHERS => 06002;

my $call = $BY_MACHINE{ machine() } or fail("the machine's kind, ${\ machine()}, is not supported");
my $abi = landlock_abi();

# How rules are written, and what they do. The order of %DO is the order in which it happens.
my (@read, @write, @limits, $offline, $quiet, $counted, $files, $free);
my %RULES = (
    'files'   => sub { $files = 1 },                    # only the paths of the following rules
    'read'    => sub { push @read, shift @ARGV },       # PATH: read and execute
    'write'   => sub { push @write, shift @ARGV },      # PATH: everything but making devices
    'limit'   => sub { push @limits, shift @ARGV },     # NUMBER=VALUE: a resource of setrlimit
    'offline' => sub { $offline = 1 },                  # no socket but Unix ones
    'quiet'   => sub { $quiet = 1 },                    # fewer system calls; with `offline` no connection at all
    'free'    => sub { $free = 1 },                     # nothing given up: for no other rule
    'counted' => sub { $counted = 1 },                  # its processes count for itself, not for its user
);

if (($ARGV[0] // '') eq 'probe') {
    probe();
    exit 0;
}
while (@ARGV) {
    my $rule = shift @ARGV;
    last if $rule eq '--';
    ($RULES{$rule} or fail("unknown rule $rule"))->();
}
@ARGV or fail('no program');
my $keeper = keep();
confine() if !$free;
close_others();
sys('prctl', SIGNAL_OF_PARENTS_DEATH, 9, 0, 0, 0);
getppid == $keeper or exit 126;
{ exec { $ARGV[0] } @ARGV }
fail("cannot start $ARGV[0]: $!");

sub confine {
    count_alone() if $counted;
    set_limits();
    drop_capabilities();
    sys('prctl', NO_NEW_PRIVS, 1, 0, 0, 0) == 0 or fail('no_new_privs');
    confine_files() if $files;
    filter_calls() if $offline or $quiet or $files;
}

# Returns its pid in a child, which must end when this one does. The parent adopts whatever the child started and
# left, in sessions of its own or not. It kills all of that when the child has ended, and ends as the child did.
# Without the server it ends the child, too. Signals: TERM is for the child, USR1 kills it.
sub keep {
    my ($server, $keeper) = (getppid, $$);
    sys('prctl', CHILD_SUBREAPER, 1, 0, 0, 0) == 0 or fail("subreaper: $!");
    my $child = fork() // fail("fork: $!");
    return $keeper if $child == 0;
    @SIG{qw(INT HUP QUIT)} = ('IGNORE') x 3;
    @SIG{qw(TERM USR1 ALRM)} = (sub { kill 'TERM', $child }, (sub { kill 'KILL', $child }) x 2);
    $SIG{USR2} = sub { alarm 1 }; # in which most workers end by themselves
    sys('prctl', SIGNAL_OF_PARENTS_DEATH, 12, 0, 0, 0);
    getppid == $server or alarm 1;
    open STDIN, '<', '/dev/null';
    open $_, '>', '/dev/null' for *STDOUT, *STDERR;
    1 until wait == $child;
    my $status = $?;
    kill_adopted();
    end_as($status);
}

# A round kills children; theirs are children in the next one. What has another user's rights by now is left.
sub kill_adopted {
    for my $round (1 .. 1000) {
        my @left = children() or return;
        kill('KILL', @left) or return;
        select undef, undef, undef, 0.005 if $round > 100;
        1 while waitpid(-1, 1) > 0; # WNOHANG
    }
}

sub children {
    open my $file, '<', "/proc/$$/task/$$/children" or return ();
    return split ' ', <$file> // '';
}

sub end_as {
    my $status = shift;
    my $signal = $status & 127 or exit $status >> 8;
    my $none = pack 'QQ', 0, 0;
    sys('prlimit64', 0, 4, $none, 0); # no core of its own
    @SIG{qw(TERM USR1 USR2 ALRM INT HUP QUIT)} = ('DEFAULT') x 7;
    kill $signal, $$;
    exit 128 + $signal;
}

sub machine {
    open my $file, '<:raw', '/proc/self/exe' or return 'unknown';
    read $file, my $head, 20;
    my $kind = unpack 'v', substr $head, 18, 2;
    return $kind == 62 ? 'x86_64' : $kind == 183 ? 'aarch64' : "ELF $kind";
}

sub sys {
    my ($name, @arguments) = @_;
    return syscall number($name), @arguments;
}

sub fail {
    print STDERR "guest: $_[0]\n";
    exit 126;
}

sub landlock_abi {
    my $found = sys('landlock_create_ruleset', 0, 0, 1);
    return $found < 0 ? 0 : $found;
}

sub probe {
    print "landlock $abi\n";
    my $pid = fork() // fail("fork: $!");
    if ($pid == 0) {
        sys('prctl', NO_NEW_PRIVS, 1, 0, 0, 0);
        $offline = 1;
        filter_calls(sub { exit 1 });
        exit 0;
    }
    waitpid $pid, 0;
    print 'seccomp ', ($? == 0 ? 1 : 0), "\n";
    $pid = fork() // fail("fork: $!");
    if ($pid == 0) {
        count_alone(sub { exit 1 });
        exit 0;
    }
    waitpid $pid, 0;
    print 'namespaces ', ($? == 0 ? 1 : 0), "\n";
}

# In a user namespace of its own, in which it is who it was, the kernel counts its processes apart.
sub count_alone {
    my $failed = shift // sub { fail("user namespace: $!") };
    my ($uid, $gid) = ($>, (split ' ', $))[0]);
    sys('unshare', 0x10000000) == 0 or $failed->();
    write_to('/proc/self/setgroups', 'deny') and write_to('/proc/self/uid_map', "$uid $uid 1")
        and write_to('/proc/self/gid_map', "$gid $gid 1") or $failed->();
}

sub write_to {
    my ($path, $text) = @_;
    sysopen my $file, $path, 1 or return 0;
    return defined syswrite $file, $text;
}

sub set_limits {
    for (@limits) {
        my ($resource, $value) = split /=/;
        my $limit = pack 'QQ', $value, $value;
        sys('prlimit64', 0, $resource + 0, $limit, 0) == 0 or fail("limit $resource: $!");
    }
}

# Root without capabilities owns its files but cannot trace, mount, load modules or pass other users' locks.
sub drop_capabilities {
    return if $> != 0;
    for my $capability (0 .. 63) { last if sys('prctl', 24, $capability, 0, 0, 0) != 0 }
    my $header = pack 'LL', 0x20080522, 0;
    my $none = pack 'L6', (0) x 6;
    sys('capset', $header, $none) == 0 or fail("capset: $!");
}

# What was open in the server, or in the shell that started it, is not for the program.
sub close_others { sys('close_range', 3, 0xFFFFFFFF, 4) } # CLOSE_RANGE_CLOEXEC

# Landlock: nothing but the named paths, no signal and no abstract socket out of here. Its restriction also hides
# the memory and the environment of every process that is not restricted in the same way.
sub confine_files {
    $abi > 0 or fail('the kernel has no Landlock');
    my $all = $FS_BY_ABI[ $abi > 5 ? 5 : $abi ];
    my $attributes = pack 'QQQ', $all, 0, $abi >= 6 ? 3 : 0;
    my $size = $abi >= 6 ? 24 : $abi >= 4 ? 16 : 8;
    my $rules = sys('landlock_create_ruleset', $attributes, $size, 0);
    $rules >= 0 or fail("landlock_create_ruleset: $!");
    allow($rules, $_, (EXECUTE | READ_FILE | READ_DIR) & $all) for @read;
    allow($rules, $_, $all & ~(0x40 | 0x800)) for @write;
    sys('landlock_restrict_self', $rules, 0) == 0 or fail("landlock_restrict_self: $!");
}

# A path that is not there needs no rule: it cannot be reached when it comes.
sub allow {
    my ($rules, $path, $rights) = @_;
    sysopen my $place, $path, 0x280000 or return; # O_PATH | O_CLOEXEC
    $rights &= ON_FILES if !-d $place;
    my $rule = pack 'Ql', $rights, fileno $place;
    sys('landlock_add_rule', $rules, 1, $rule, 0) == 0 or fail("landlock_add_rule $path: $!");
}

# A filter in BPF. It names what is refused, so that a new call of the kernel is allowed, not broken.
sub filter_calls {
    my $failed = shift // sub { fail("seccomp: $!") };
    my @never;
    push @never, 'io_uring_setup' if $offline or $quiet or $files; # its operations pass by this filter
    push @never, 'truncate' if $files and $abi < 3;
    push @never, qw(ptrace process_vm_readv process_vm_writev pidfd_getfd keyctl add_key request_key bpf
        perf_event_open userfaultfd unshare setns mount) if $quiet;
    # Landlock guards the content of files, not who owns them and who may read them. An open file can be changed.
    push @never, qw(chmod fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat utimensat
        removexattr lremovexattr removexattrat) if $quiet;
    # Memory and queues that processes of the same user share without a path.
    push @never, qw(shmget semget msgget mq_open) if $quiet;
    # An attribute can be a list of users who may write. Programs such as `cp -p` know systems without attributes.
    my @absent = $files || $quiet ? qw(setxattr lsetxattr fsetxattr setxattrat) : ();
    push @never, 'connect' if $quiet and $offline;
    my @myself = $files && $abi < 6 ? qw(kill) : ();
    push @never, qw(tkill rt_sigqueueinfo pidfd_send_signal) if @myself;
    # The registers must be those of this machine; others have other numbers.
    my @program = ([0x20, 0, 0, 4], [0x15, 1, 0, $call->{audit}], [0x06, 0, 0, 0x80000000], [0x20, 0, 0, 0]);
    push @program, [0x35, 0, 1, $call->{x32}], REFUSED if $call->{x32};
    push @program, always(REFUSED, @never), always(UNSUPPORTED, @absent);
    push @program, map { only($_, 0, $$) } @myself;
    # prlimit64(pid, ...): its own limits; with those of another process it could end that process.
    push @program, only('prlimit64', 0, 0) if $files or $quiet;
    push @program, guarded_owners() if $files;
    push @program, only('socket', 0, 1) if $offline; # socket(family, ...): only Unix sockets
    push @program, ALLOWED;
    my $code = join '', map { pack 'SCCL', @$_ } @program;
    my $filter = pack 'Sx6P', scalar @program, $code;
    sys('prctl', 22, 2, $filter, 0, 0) == 0 or $failed->();
}

# Landlock guards no modes and owners, and a filter sees no paths. What handlers do to their own files must work, so
# this stops what harms most wherever the file is: other users who write, or run a program as the server's user.
sub guarded_owners {
    my @mine = (0xFFFFFFFF, (split ' ', $))[0]);
    return (without('chmod', 1, OPEN_TO_OTHERS), without('fchmod', 1, OPEN_TO_OTHERS),
        without('fchmodat', 2, OPEN_TO_OTHERS), without('fchmodat2', 2, OPEN_TO_OTHERS),
        only('chown', 2, @mine), only('lchown', 2, @mine), only('fchown', 2, @mine), only('fchownat', 3, @mine));
}

sub always {
    my ($answer, @names) = @_;
    return map { defined number($_) ? ([0x15, 0, 1, number($_)], $answer) : () } @names;
}

# The low half of an argument must be one of the values. All that these calls look at are 32 bits.
sub only {
    my ($name, $argument, @values) = @_;
    my $left = @values;
    return ruled($name, $argument, map { [0x15, $left--, 0, $_] } @values);
}

# The argument must have none of these bits.
sub without {
    my ($name, $argument, $bits) = @_;
    return ruled($name, $argument, [0x45, 0, 1, $bits]);
}

# Tests that jump over the refusal if the call is allowed.
sub ruled {
    my ($name, $argument, @tests) = @_;
    defined number($name) or return ();
    return ([0x15, 0, @tests + 3, number($name)], [0x20, 0, 0, 16 + 8 * $argument], @tests, REFUSED, ALLOWED);
}

sub number { return $SAME{ $_[0] } // $call->{ $_[0] } }
