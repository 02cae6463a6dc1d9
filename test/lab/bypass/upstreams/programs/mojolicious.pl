# One protected API in Mojolicious, on its own server.
use Mojolicious::Lite -signatures;
use Fcntl;

sysopen my $hits, $ENV{HITS}, O_WRONLY | O_APPEND or die $!;
my $paid = sub ($c) { syswrite $hits, 'x'; $c->render(text => 'paid for') };
my $free = sub ($c) { $c->render(text => 'free') };

app->mode('production');
app->log->level('fatal');
get '/v1/reports/open' => $free;
get '/v1/files/public' => $free;
get '/v1/export' => $paid;
get '/v1/reports/:id' => $paid;
get '/v1/files/*rest' => $paid;
post '/v1/teams/:team/jobs/:job' => $paid;
get '/v1/Kiss/Data' => $paid;
get '/v1/my report' => $paid;
any '/free/*rest' => $free;
app->start('daemon', '-l', "http://127.0.0.1:$ENV{PORT}");
